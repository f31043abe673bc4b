//! How it is used, how it is built, and what is in the file.

#[doc = include_str!("architecture.md")]
pub mod architecture {}
#[doc = include_str!("format.md")]
pub mod format {}
#[doc = include_str!("guide/index.md")]
pub mod guide {
    #[doc = include_str!("guide/embedding.md")]
    pub mod embedding {}
    #[doc = include_str!("guide/exactly_once.md")]
    pub mod exactly_once {}
    #[doc = include_str!("guide/failure.md")]
    pub mod failure {}
    #[doc = include_str!("guide/first_job.md")]
    pub mod first_job {}
    #[doc = include_str!("guide/state.md")]
    pub mod state {}
    #[doc = include_str!("guide/tuning.md")]
    pub mod tuning {}
}
#[doc = include_str!("loops.md")]
pub mod loops {}
#[doc = include_str!("state.md")]
pub mod state {}
