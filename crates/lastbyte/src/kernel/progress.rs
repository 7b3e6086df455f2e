//! Who hears how building a kernel goes.

/// Hears how a build goes on.
pub trait Progress {
    /// Something worth knowing, in a line.
    fn note(&self, note: &str);
    /// What is done from now on.
    fn stage(&self, stage: &str);
    /// How much of it is done.
    fn advance(&self, done: u64, all: u64);
}
