//! What the fuzz targets share.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

use openssl::kdf::{HkdfMode, hkdf};
use openssl::md::Md;

/// Cuts `data` into pieces: a tag, a length of two bytes, and as many bytes or as are left.
pub fn pieces(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[tag, high, low], rest) = data.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (piece, rest) = rest.split_at(length.min(rest.len()));
        data = rest;
        Some((tag, piece))
    })
}

/// Changes `bytes` as each three of `changes` say: a place of two bytes, and what the byte there is combined with.
pub fn change(bytes: &mut [u8], changes: &[u8]) {
    for [high, low, mask] in changes.as_chunks().0 {
        let at = usize::from(u16::from_be_bytes([*high, *low]));
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= mask;
        }
    }
}

/// One end of a connection in memory.
#[derive(Default)]
pub struct Pipe {
    incoming: Rc<RefCell<VecDeque<u8>>>,
    outgoing: Rc<RefCell<VecDeque<u8>>>,
}

impl Pipe {
    /// Both ends.
    pub fn pair() -> [Pipe; 2] {
        let one = Pipe::default();
        let other = Pipe {
            incoming: Rc::clone(&one.outgoing),
            outgoing: Rc::clone(&one.incoming),
        };
        [one, other]
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = self.incoming.borrow_mut();
        if incoming.is_empty() {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            incoming.read(buffer)
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outgoing.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446, 7.1).
pub fn expand<const N: usize>(secret: &[u8], label: &[u8]) -> [u8; N] {
    let label = [b"tls13 ", label].concat();
    let lengths = [0, N as u8, label.len() as u8];
    let info = [&lengths, &label[..], &[0]].concat();
    let mut out = [0; N];
    let mode = HkdfMode::ExpandOnly;
    hkdf(
        Md::sha256(),
        secret,
        None,
        Some(&info),
        mode,
        None,
        &mut out,
    )
    .unwrap();
    out
}
