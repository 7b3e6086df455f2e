use std::fmt;

use crate::TlsError;

/// The most application data that one record holds, in bytes (RFC 8446, 5.1).
pub const MAX_PLAINTEXT: usize = 1 << 14;

/// A TLS implementation, configured for both sides of a connection.
pub trait Stack: Send + Sync {
    /// The name by which users select it: `openssl`.
    fn name(&self) -> &'static str;

    /// A client that has sent nothing yet.
    fn client(&self) -> Result<Box<dyn Connection>, TlsError>;

    /// A server that waits for a ClientHello.
    fn server(&self) -> Result<Box<dyn Connection>, TlsError>;
}

/// One side of one connection. It owns no socket and reads no clock.
///
/// After any error the connection is of no more use, except that
/// [`transmit`](Connection::transmit) may still give an alert for the peer.
pub trait Connection: Send {
    /// Takes bytes that the peer sent; nothing is done with them yet.
    fn receive(&mut self, bytes: &[u8]);

    /// Carries the handshake as far as it goes with what was received.
    ///
    /// When a client becomes [`Progress::Established`], its last flight waits
    /// to be transmitted. Once established, this does nothing.
    fn advance(&mut self) -> Result<Progress, TlsError>;

    /// Moves the bytes that are to be sent to the end of `out`.
    fn transmit(&mut self, out: &mut Vec<u8>);

    /// Encrypts `plaintext`, 1 to [`MAX_PLAINTEXT`] bytes, as one record for
    /// [`transmit`](Connection::transmit) to take.
    fn write_record(&mut self, plaintext: &[u8]) -> Result<(), TlsError>;

    /// Decrypts application data into `buffer` and returns its length in bytes:
    /// of one record at most, 0 when no whole record is there.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, TlsError>;

    /// The secrets so far.
    fn key_log(&self) -> KeyLog;
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing more can be done before the peer sends more.
    Handshaking,
    /// Application data can be written and read.
    Established,
}

/// The secrets of one connection as an `SSLKEYLOGFILE` holds them (RFC 9850).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyLog(String);

impl KeyLog {
    /// Adds a line, without its line break: a label, the ClientHello's random
    /// and the secret, the last two in hexadecimal.
    pub fn push_line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// All lines, as Wireshark reads them.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn secret(&self, label: &str) -> Option<Vec<u8>> {
        self.0.lines().find_map(|line| {
            let mut words = line.split(' ');
            (words.next() == Some(label)).then_some(())?;
            decode_hex(words.nth(1)?)
        })
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.0.lines().filter_map(|line| line.split(' ').next());
        f.debug_list().entries(labels).finish()
    }
}

fn decode_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .map(|c| c.to_digit(16))
        .collect::<Option<_>>()?;
    digits
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect()
}
