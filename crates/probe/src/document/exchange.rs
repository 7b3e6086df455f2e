//! What a document says of the first connection, as an exchange.

use lastbyte_exchange::{Exchange, HandshakeFlight, Then, Transfer, Unit, Writes};
use lastbyte_sizes::{Group, Message};

use super::Document;

impl From<&Document> for Exchange {
    fn from(document: &Document) -> Exchange {
        let tls = &document.tls;
        let some = |bytes: usize| u32::try_from(bytes).ok().filter(|bytes| *bytes > 0);
        let mut exchange = Exchange::default();
        for (message, bytes) in [
            (Message::EncryptedExtensions, tls.encrypted_extensions_bytes),
            (Message::Certificate, some(tls.certificate_bytes)),
            (
                Message::CertificateVerify,
                document.certificate_verify_bytes,
            ),
        ] {
            exchange.handshake.messages.set(message, bytes);
        }
        exchange.handshake.see_all([
            (
                HandshakeFlight::ClientHello,
                some(tls.client_hello_wire_bytes),
            ),
            (HandshakeFlight::Server, some(tls.server_flight_wire_bytes)),
        ]);
        let writes = tls.writes.as_ref();
        exchange.handshake.server_writes =
            writes.and_then(|writes| observed_writes(Then::Rest, &writes.first));
        let group = document.group.as_ref();
        let group = group.and_then(|name| name.parse::<Group>().ok());
        exchange.negotiated.group = group.map(Group::code_point);
        exchange.negotiated.certificates = some(document.chain.len());
        exchange.tickets = tls.tickets_seen.transfer();
        exchange.response = document.response.as_ref().map(Transfer::from);
        exchange
    }
}

/// Writes as they were seen on the wire; none where all is one.
pub(super) fn observed_writes(then: Then, first: &[usize]) -> Option<Writes> {
    let sizes = first.iter();
    let sizes = sizes.map(|bytes| u32::try_from(*bytes).unwrap_or(u32::MAX));
    (!first.is_empty()).then(|| Writes::new(Unit::Wire, then, sizes))
}
