//! The repository that this program is of, and the blocks of its documents.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap()
}

/// A fenced block of a document.
pub(crate) struct Block {
    /// The line before it, which may name a file that it is.
    pub(crate) before: String,
    pub(crate) language: String,
    pub(crate) text: String,
}

/// Those of a document, in their order. One in a list is as if it stood by itself.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    const FENCE: &str = "```";
    let mut blocks = Vec::new();
    let mut lines = document.lines();
    let mut before = "";
    while let Some(line) = lines.next() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if let Some(language) = rest.strip_prefix(FENCE) {
            let inside = lines.by_ref().take_while(|line| line.trim() != FENCE);
            let inside = inside.map(|line| line.strip_prefix(indent).unwrap_or(line));
            blocks.push(Block {
                before: before.to_owned(),
                language: language.to_owned(),
                text: inside.collect::<Vec<_>>().join("\n") + "\n",
            });
        } else if !line.is_empty() {
            before = line;
        }
    }
    blocks
}
