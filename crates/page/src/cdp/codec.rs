//! How messages are delimited on the pipe.

use thiserror::Error;

/// Cuts what a browser writes into messages: JSON, and a zero byte behind each.
#[derive(Debug, Default)]
pub struct Codec {
    buffer: Vec<u8>,
    /// Up to where no zero byte is.
    searched: usize,
}

/// The largest message. The browser's own limit for what it sends is 256 MiB; events of a page have
/// some hundred KB.
pub const MOST_MESSAGE: usize = 64 << 20;

/// A message that is larger than [`MOST_MESSAGE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the browser sends a message of more than {} MiB", MOST_MESSAGE >> 20)]
pub struct TooLarge;

impl Codec {
    /// Takes what was read from the pipe.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message that is complete, without its end.
    ///
    /// # Errors
    ///
    /// If one gets too large. Nothing behind it can be read any more.
    pub fn pop(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        let fresh = self.buffer.get(self.searched..).unwrap_or_default();
        match fresh.iter().position(|byte| *byte == 0) {
            Some(at) => {
                let end = self.searched + at;
                let mut message: Vec<u8> = self.buffer.drain(..=end).collect();
                message.pop();
                self.searched = 0;
                if message.len() > MOST_MESSAGE {
                    Err(TooLarge)
                } else {
                    Ok(Some(message))
                }
            }
            None if self.buffer.len() > MOST_MESSAGE => Err(TooLarge),
            None => {
                self.searched = self.buffer.len();
                Ok(None)
            }
        }
    }
}
