//! Single cases worth their names.
