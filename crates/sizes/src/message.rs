//! The handshake messages whose sizes are reported.

use lastbyte_link::Side;

use crate::framing;

/// A handshake message of TLS 1.3, and who sends it (RFC 8446, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// The first ClientHello.
    ClientHello,
    /// The ServerHello.
    ServerHello,
    /// The EncryptedExtensions.
    EncryptedExtensions,
    /// The server's Certificate, or its CompressedCertificate.
    Certificate,
    /// The server's CertificateVerify.
    CertificateVerify,
    /// The server's Finished.
    ServerFinished,
    /// The client's Finished.
    ClientFinished,
    /// The HelloRetryRequest, for which the client had to send a second ClientHello.
    HelloRetryRequest,
    /// The second ClientHello.
    SecondClientHello,
    /// The CertificateRequest.
    CertificateRequest,
    /// The client's Certificate, or its CompressedCertificate.
    ClientCertificate,
    /// The client's CertificateVerify.
    ClientCertificateVerify,
}

/// The type of a handshake message (RFC 8446, 4 and RFC 8879, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the RFC's own names")]
pub enum MessageType {
    ClientHello,
    HelloRetryRequest,
    ServerHello,
    EncryptedExtensions,
    CertificateRequest,
    Certificate,
    CompressedCertificate,
    CertificateVerify,
    Finished,
    /// Any other type.
    Other(u8),
}

/// All that there is to know of a message.
struct Spec {
    message: Message,
    sender: Side,
    kinds: &'static [MessageType],
    name: &'static str,
    column: &'static str,
    title: &'static str,
    doc: &'static str,
}

/// In the order of [`Message`].
static SPECS: [Spec; Message::COUNT] = {
    use MessageType as M;
    use Side::{Client, Server};
    macro_rules! specs {
        ($($message:ident $sender:ident [$($kind:ident),*] $name:literal $title:literal $doc:literal),* $(,)?) => {
            [$(Spec {
                message: Message::$message,
                sender: $sender,
                kinds: &[$(M::$kind),*],
                name: $name,
                column: concat!($name, "_bytes"),
                title: $title,
                doc: concat!($doc, " with its 4-byte header"),
            }),*]
        };
    }
    specs![
        ClientHello Client [ClientHello] "client_hello" "ClientHello" "ClientHello",
        ServerHello Server [ServerHello] "server_hello" "ServerHello" "ServerHello",
        EncryptedExtensions Server [EncryptedExtensions] "encrypted_extensions" "EncryptedExtensions"
            "EncryptedExtensions",
        Certificate Server [Certificate, CompressedCertificate] "certificate" "Certificate" "Certificate",
        CertificateVerify Server [CertificateVerify] "certificate_verify" "CertVerify" "CertificateVerify",
        ServerFinished Server [Finished] "server_finished" "server Finished" "the server's Finished",
        ClientFinished Client [Finished] "client_finished" "client Finished" "the client's Finished",
        HelloRetryRequest Server [HelloRetryRequest] "hello_retry_request" "HelloRetryRequest"
            "HelloRetryRequest",
        SecondClientHello Client [] "second_client_hello" "second ClientHello" "the second ClientHello",
        CertificateRequest Server [CertificateRequest] "certificate_request" "CertificateRequest"
            "CertificateRequest",
        ClientCertificate Client [Certificate, CompressedCertificate] "client_certificate"
            "client Certificate" "the client's Certificate",
        ClientCertificateVerify Client [CertificateVerify] "client_certificate_verify"
            "client CertVerify" "the client's CertificateVerify",
    ]
};

impl Message {
    /// How many there are.
    pub const COUNT: usize = Message::ClientCertificateVerify as usize + 1;

    /// What a server sends of a full handshake in which nobody asks again, in its order.
    pub const SERVER_FLIGHT: [Message; 5] = [
        Message::ServerHello,
        Message::EncryptedExtensions,
        Message::Certificate,
        Message::CertificateVerify,
        Message::ServerFinished,
    ];

    /// All that there are, in the order in which they are reported.
    pub fn all() -> impl Iterator<Item = Message> + Clone {
        SPECS.iter().map(|spec| spec.message)
    }

    /// What this type is of this sender's; of ClientHellos the first.
    pub fn of(sender: Side, kind: MessageType) -> Option<Message> {
        let mut specs = SPECS.iter();
        let is_it = |spec: &&Spec| spec.sender == sender && spec.kinds.contains(&kind);
        specs.find(is_it).map(|spec| spec.message)
    }

    fn spec(self) -> &'static Spec {
        &SPECS[self as usize]
    }

    /// The name in studies: `client_hello`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The name of its size in results: `client_hello_bytes`.
    pub fn column(self) -> &'static str {
        self.spec().column
    }

    /// The title of a column of a table: `ClientHello`.
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// Bytes on the wire of one that has so many with its header, in records of its own: OpenSSL begins one for each
    /// message.
    pub fn wire_bytes(self, bytes: usize) -> usize {
        match self {
            Message::ClientHello
            | Message::SecondClientHello
            | Message::HelloRetryRequest
            | Message::ServerHello => framing::RECORD_HEADER + bytes,
            _ => framing::encrypted(bytes),
        }
    }

    /// What its size is, in words.
    pub fn doc(self) -> &'static str {
        self.spec().doc
    }
}

/// The sizes of the messages of a handshake, in bytes with the handshake header of four bytes (RFC 8446, section
/// 4). A message that did not come, or could not be read, has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageSizes([Option<u32>; Message::COUNT]);

impl MessageSizes {
    /// That of a message.
    pub fn get(&self, message: Message) -> Option<u32> {
        self.0[message as usize]
    }

    /// Says how large a message is.
    pub fn set(&mut self, message: Message, bytes: Option<u32>) {
        self.0[message as usize] = bytes;
    }

    /// Notes what was sent; of two alike, the first counts, but for ClientHellos.
    pub fn note(&mut self, sender: Side, kind: MessageType, bytes: usize) {
        let Some(message) = Message::of(sender, kind) else {
            return;
        };
        let message = match (message, self.get(message)) {
            (Message::ClientHello, Some(_)) => Message::SecondClientHello,
            _ => message,
        };
        let place = &mut self.0[message as usize];
        place.get_or_insert(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}

impl FromIterator<(Message, u32)> for MessageSizes {
    fn from_iter<T: IntoIterator<Item = (Message, u32)>>(sizes: T) -> MessageSizes {
        let mut all = MessageSizes::default();
        for (message, bytes) in sizes {
            all.set(message, Some(bytes));
        }
        all
    }
}
