//! What a server of PQTLS-AD does with the ClientHellos of anybody, before and after it has asked for another one.
#![no_main]

use std::io::Write;
use std::sync::{Arc, LazyLock};

use lastbyte_fuzz::{Pipe, pieces};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use libfuzzer_sys::fuzz_target;
use openssl::ssl::{Ssl, SslContext, SslMethod, SslSessionCacheMode, SslStream, SslVersion};
use pqtlsad::Digest;
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, server};
use pqtlsad::server::{Chain, Chains, SharedChains};

/// The digests of its chain from the top on, and a server for each way to prove the key, which wants P-256 at last.
struct Server {
    digests: Vec<Digest>,
    contexts: [SslContext; 2],
}

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let chain = Store::open(folder.path()).chain(&spec).unwrap();
    let chain = Chain::new(chain.certificates().to_vec(), chain.key().clone()).unwrap();
    let digests = (1..=3)
        .map(|count| chain.topmost(count).unwrap().digest())
        .collect();
    let chains = Arc::new(SharedChains::new(Chains::new(vec![chain])));
    let contexts = [EndEntity::RawPublicKey, EndEntity::Carrier].map(|end_entity| {
        let mut context = SslContext::builder(SslMethod::tls_server()).unwrap();
        context
            .set_min_proto_version(Some(SslVersion::TLS1_3))
            .unwrap();
        context.set_session_cache_mode(SslSessionCacheMode::OFF);
        context.set_num_tickets(0).unwrap();
        context.set_groups_list("X25519:P-256").unwrap();
        server::install(
            &mut context,
            Arc::clone(&chains),
            ExtensionType::DEFAULT,
            end_entity,
        )
        .unwrap();
        context.build()
    });
    Server { digests, contexts }
});

/// What extensions are picked from; all others are written with their number.
const NUMBERS: [u16; 12] = [0, 10, 13, 16, 19, 20, 21, 41, 42, 43, 45, 51];
const OWN: u8 = 12;
/// Begins another ClientHello.
const NEXT: u8 = 14;
/// Is handed over as it is.
const RAW: u8 = 15;

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    let server = &*SERVER;
    let [mut client, end] = Pipe::pair();
    let ssl = Ssl::new(&server.contexts[usize::from(kind % 2)]).unwrap();
    let mut stream = SslStream::new(ssl, end).unwrap();
    let mut offered = Vec::new();
    let mut hello = Hello::default();
    let mut is_own = true;
    for (tag, piece) in pieces(data).take(64) {
        match tag % 16 {
            NEXT => {
                client
                    .write_all(&std::mem::take(&mut hello).encode())
                    .unwrap();
                // Whatever it says to it is a state that it can be in.
                let _ = stream.accept();
            }
            RAW => {
                is_own = false;
                client.write_all(piece).unwrap();
                let _ = stream.accept();
            }
            OWN => {
                // The digest of a part, in which some bytes may be others, or anything.
                let digest = server.digests.get(usize::from(tag / 16));
                let mut said = digest.map_or_else(Vec::new, |digest| digest.as_bytes().to_vec());
                match digest {
                    Some(_) => lastbyte_fuzz::change(&mut said, piece),
                    None => said.extend_from_slice(piece),
                }
                offered.push(said.clone());
                hello.extensions.push((ExtensionType::DEFAULT.0, said));
            }
            known => match NUMBERS.get(usize::from(known)) {
                Some(number) => hello.extensions.push((*number, piece.to_vec())),
                None => {
                    if let Some((number, piece)) = piece.split_first_chunk() {
                        let number = u16::from_be_bytes(*number);
                        hello.extensions.push((number, piece.to_vec()));
                    }
                }
            },
        }
    }
    client.write_all(&hello.encode()).unwrap();
    let _ = stream.accept();
    // Nothing is left out for whom has not said that it has just that.
    if let Some((_, count)) = server::omitted(stream.ssl())
        && is_own
    {
        let digest = server.digests[count - 1].as_bytes().as_slice();
        assert!(offered.iter().any(|said| said == digest));
    }
});

/// A ClientHello that is right but for what is said otherwise.
#[derive(Default)]
struct Hello {
    extensions: Vec<(u16, Vec<u8>)>,
}

impl Hello {
    /// As a record.
    fn encode(mut self) -> Vec<u8> {
        let mut share = vec![0, 36, 0, 29, 0, 32, 9];
        share.resize(38, 0);
        let usual: [(u16, &[u8]); 4] = [
            (43, &[2, 3, 4]),
            (10, &[0, 4, 0, 29, 0, 23]),
            (13, &[0, 4, 4, 3, 8, 7]),
            (51, &share),
        ];
        for (number, content) in usual {
            if self.extensions.iter().all(|(said, _)| *said != number) {
                self.extensions.push((number, content.to_vec()));
            }
        }
        // A ticket's binders end the hello.
        self.extensions.sort_by_key(|(number, _)| *number == 41);
        let mut extensions = Vec::new();
        for (number, content) in &self.extensions {
            extensions.extend(number.to_be_bytes());
            extensions.extend((content.len() as u16).to_be_bytes());
            extensions.extend(content);
        }
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 6, 0x13, 1, 0x13, 2, 0x13, 3, 1, 0]);
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
        let mut message = vec![1];
        message.extend(&(body.len() as u32).to_be_bytes()[1..]);
        message.extend(body);
        let mut records = Vec::new();
        for fragment in message.chunks(1 << 14) {
            records.extend([22, 3, 1]);
            records.extend((fragment.len() as u16).to_be_bytes());
            records.extend(fragment);
        }
        records
    }
}
