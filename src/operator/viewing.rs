//! A view of an operator's state, as it is taken: what is asked of everything with state in a task, a little at a time.

use crate::page::CutPages;
use crate::record::{Evolution, Schema};
use std::sync::Arc;

/// What is asked.
pub enum Viewing<'a> {
    /// The cut is now.
    Begin,
    /// Goes on by so many pages of each table; tables that are complete are handed over.
    Step { pages: u32, complete: &'a mut Vec<TableCut> },
    /// Nobody wants it any more.
    Drop,
}

/// One task's table as it was at the cut.
pub struct TableCut {
    pub(crate) operator: Arc<str>,
    pub(crate) state: String,
    pub(crate) task: u32,
    pub(crate) tasks: u32,
    /// That of the state.
    pub(crate) schema: Schema,
    /// It is of what was outdated: what becomes of its values.
    pub(crate) outdated: Option<Evolution>,
    pub(crate) root: Vec<u8>,
    pub(crate) pages: CutPages,
}
