//! Which certificates are worth publishing: as few as bring the server's first flight within its
//! initial window, computed from the sizes of its messages.

use std::fmt;

use lastbyte_flights::flights_needed;
use lastbyte_sizes::framing::{self, CHANGE_CIPHER_SPEC, EXTENSION_HEADER, RECORD_HEADER};

use crate::server::PublicChain;
use crate::{Digest, Part};

/// What a server may send before the first acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindow {
    /// In segments (`initcwnd`).
    pub segments: u32,
    /// Payload of a segment, in bytes.
    pub mss: u32,
}

impl InitialWindow {
    /// Its payload in bytes.
    pub fn bytes(self) -> usize {
        self.segments as usize * self.mss as usize
    }
}

/// Ten segments (RFC 6928), each of a 1500-byte packet less the headers of IPv4 and TCP with
/// timestamps.
impl Default for InitialWindow {
    fn default() -> Self {
        InitialWindow {
            segments: 10,
            mss: framing::MSS as u32,
        }
    }
}

/// The server's first flight when DNS delivers some of its chain. Sizes of messages are in bytes
/// with their 4-byte headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// Certificates that DNS delivers, from the top. None is the plain handshake.
    pub omitted: usize,
    /// What they are.
    pub part: Option<Part>,
    /// ServerHello.
    pub server_hello: usize,
    /// Certificate: a raw public key (RFC 7250) if even the end-entity is left out.
    pub certificate: usize,
    /// CertificateVerify.
    pub certificate_verify: usize,
    /// From the first byte of the ServerHello to the last of Finished, as TCP carries it.
    pub bytes: usize,
    /// Whether that fits the initial window.
    pub fits: bool,
}

/// All that a server could leave out, and what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// In the order of how much is left out, nothing first.
    pub flights: Vec<Flight>,
    /// The index of the one to choose: the first that fits, else the last, which leaves out most.
    pub chosen: usize,
    window: InitialWindow,
}

impl Plan {
    /// Computes it for a chain, a group whose server's key share has `share` bytes, and a window.
    pub fn new(chain: &PublicChain, share: usize, window: InitialWindow) -> Plan {
        let all = chain.certificates().len();
        let flights: Vec<Flight> = (0..=all)
            .map(|omitted| Flight::new(chain, omitted, share, window))
            .collect();
        let chosen = flights.iter().position(|flight| flight.fits);
        Plan {
            chosen: chosen.unwrap_or(all),
            flights,
            window,
        }
    }

    /// The flight to choose.
    pub fn choice(&self) -> &Flight {
        &self.flights[self.chosen]
    }
}

impl Flight {
    fn new(chain: &PublicChain, omitted: usize, share: usize, window: InitialWindow) -> Flight {
        let all = chain.certificates().len();
        let raw_key = omitted == all;
        let server_hello = framing::server_hello(share) + if omitted > 0 { EXTENSION } else { 0 };
        let encrypted_extensions =
            framing::ENCRYPTED_EXTENSIONS + if raw_key { CERTIFICATE_TYPE } else { 0 };
        let certificate = if raw_key {
            let key = chain.public_key().public_key_to_der();
            framing::certificate_message([key.map_or(0, |key| key.len())])
        } else {
            framing::certificate_message(chain.lengths().take(all - omitted))
        };
        let certificate_verify = framing::certificate_verify(chain.public_key().size());
        let encrypted = [
            encrypted_extensions,
            certificate,
            certificate_verify,
            // With SHA-384, the longer of the two.
            framing::finished(48),
        ];
        // Each in records of its own.
        let encrypted: usize = encrypted.into_iter().map(framing::encrypted).sum();
        let bytes = RECORD_HEADER + server_hello + CHANGE_CIPHER_SPEC + encrypted;
        Flight {
            omitted,
            part: (omitted > 0).then(|| chain.part(omitted)),
            server_hello,
            certificate,
            certificate_verify,
            bytes,
            fits: flights_needed(bytes, window.mss as usize, window.segments) <= 1,
        }
    }
}

/// Bytes of the extension in a hello, with its type and length.
pub const EXTENSION: usize = EXTENSION_HEADER + Digest::LENGTH;
/// server_certificate_type with its type and length (RFC 7250).
const CERTIFICATE_TYPE: usize = EXTENSION_HEADER + 1;

/// For the operator, a line for each choice.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let window = self.window;
        writeln!(
            f,
            "The initial window is {} bytes ({} segments of {}). The server's first flight:",
            window.bytes(),
            window.segments,
            window.mss
        )?;
        for (index, flight) in self.flights.iter().enumerate() {
            let what = match flight.part {
                None => "nothing from DNS".to_owned(),
                Some(Part::EndEntity) => "the whole chain from DNS".to_owned(),
                Some(part) => format!("from DNS down to the {part} ({})", flight.omitted),
            };
            let fits = if flight.fits { "fits" } else { "does not fit" };
            let mark = if index == self.chosen { "->" } else { "  " };
            writeln!(f, "{mark} {what}: {} bytes, {fits}", flight.bytes)?;
        }
        let choice = self.choice();
        match (choice.omitted, choice.fits) {
            (0, true) => write!(
                f,
                "The whole chain fits: a record would save no round trip."
            ),
            (_, true) => write!(
                f,
                "That is the least that saves the wait for an acknowledgement."
            ),
            (_, false) => write!(
                f,
                "None fits: the whole chain is published, which leaves the fewest round trips."
            ),
        }
    }
}

#[cfg(test)]
mod tests;
