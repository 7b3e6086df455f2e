//! Writing DER (ITU-T X.690), as much of it as certificates need.
//!
//! Certificates are composed here rather than by OpenSSL's builder, because
//! exact padding needs to know a certificate's size before it is signed.

use std::fmt;

/// The tag of a truth value.
pub const BOOLEAN: u8 = 0x01;
/// The tag of a whole number.
pub const INTEGER: u8 = 0x02;
/// The tag of bits.
pub const BIT_STRING: u8 = 0x03;
/// The tag of bytes.
pub const OCTET_STRING: u8 = 0x04;
/// The tag of an [`Oid`].
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// The tag of text.
pub const UTF8_STRING: u8 = 0x0c;
/// The tag of text of few characters.
pub const PRINTABLE_STRING: u8 = 0x13;
/// The tag of a time through 2049.
pub const UTC_TIME: u8 = 0x17;
/// The tag of a time.
pub const GENERALIZED_TIME: u8 = 0x18;
/// The tag of elements in their order.
pub const SEQUENCE: u8 = 0x30;
/// The tag of elements in any order.
pub const SET: u8 = 0x31;

/// The tag of a context-specific primitive element.
pub const fn implicit(number: u8) -> u8 {
    0x80 | number
}

/// The tag of a context-specific constructed element.
pub const fn explicit(number: u8) -> u8 {
    0xa0 | number
}

/// One element: tag, length in its shortest form, contents.
pub fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
    let length = contents.len().to_be_bytes();
    let zeros = length.iter().take_while(|byte| **byte == 0).count();
    let (_, significant) = length.split_at(zeros);
    let mut out = Vec::with_capacity(2 + length.len() + contents.len());
    out.push(tag);
    match significant {
        [] => out.push(0),
        [short @ 0..0x80] => out.push(*short),
        long => {
            out.push(0x80 | long.len() as u8);
            out.extend_from_slice(long);
        }
    }
    out.extend_from_slice(contents);
    out
}

/// A SEQUENCE of `parts`, which are elements themselves.
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

/// A BIT STRING of whole bytes.
pub fn bit_string(bytes: &[u8]) -> Vec<u8> {
    element(BIT_STRING, &[&[0], bytes].concat())
}

/// A BIT STRING of the named bits of `bits`, the first the highest. There is at
/// least one; zero bits after the last one are left out (X.690 section 11.2.2).
pub fn named_bits(bits: u8) -> Vec<u8> {
    element(BIT_STRING, &[bits.trailing_zeros() as u8, bits])
}

/// An object identifier, by its arcs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Oid(pub &'static [u32]);

impl Oid {
    /// Its DER.
    pub fn to_der(self) -> Vec<u8> {
        object_identifier(self.0)
    }
}

/// An object identifier of these arcs.
pub fn object_identifier(arcs: &[u32]) -> Vec<u8> {
    let mut contents = Vec::new();
    if let [first, second, rest @ ..] = arcs {
        push_base_128(&mut contents, first * 40 + second);
        for arc in rest {
            push_base_128(&mut contents, *arc);
        }
    }
    element(OBJECT_IDENTIFIER, &contents)
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arcs: Vec<_> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&arcs.join("."))
    }
}

fn push_base_128(out: &mut Vec<u8>, arc: u32) {
    for shift in [28, 21, 14, 7] {
        if arc >> shift != 0 {
            out.push(0x80 | (arc >> shift) as u8);
        }
    }
    out.push(arc as u8 & 0x7f);
}
