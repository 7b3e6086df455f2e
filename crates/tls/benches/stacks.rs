//! What handshakes cost on each stack that is built in, by the thread's CPU clock.
//!
//! - `cargo bench -p lastbyte-tls --all-features --bench stacks -- handshakes`: handshakes per CPU
//!   second, the client's share and the server's. All are taken in turn, round after round.
//! - `cargo bench -p lastbyte-tls --all-features --bench stacks -- trait`: what the trait costs,
//!   against each library's own interface, in pairs.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;
use std::time::Duration;

use lastbyte_pki::{Chain, ChainSpec, KeyAlgorithm, Store};
use lastbyte_tls::{
    Group, Stack, StackName, TlsConfig, handshake_in_memory, names, stack, time_handshake,
};
use nix::time::{ClockId, clock_gettime};

fn main() {
    let wanted: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let benches: [(&str, fn()); 2] = [("handshakes", handshakes), ("trait", direct::compare)];
    for (name, bench) in benches {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("## {name}\n");
            bench();
            println!();
        }
    }
}

fn chain(algorithm: KeyAlgorithm) -> Chain {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let spec = ChainSpec::new(algorithm);
    Store::open(target.join("test-chains"))
        .chain(&spec)
        .unwrap()
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .unwrap()
        .into()
}

/// The median and its 95 % interval, which the two order statistics 0.98 √n from it make.
fn median(values: &[Duration]) -> [Duration; 3] {
    let mut sorted = values.to_vec();
    sorted.sort();
    let n = sorted.len() as f64;
    let at = |rank: f64| sorted[(rank.max(0.0) as usize).min(sorted.len() - 1)];
    let spread = 0.98 * n.sqrt();
    [at(n / 2.0), at(n / 2.0 - spread), at(n / 2.0 + spread)]
}

struct Case {
    name: StackName,
    stack: Box<dyn Stack>,
    label: String,
    client: Vec<Duration>,
    server: Vec<Duration>,
}

fn handshakes() {
    const ROUNDS: usize = 1000;
    let mut cases = Vec::new();
    for key in [
        KeyAlgorithm::EcdsaP256,
        KeyAlgorithm::Rsa2048,
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
    ] {
        let chain = chain(key);
        for key_shares in [
            vec![Group::Secp256r1],
            vec![Group::X25519],
            vec![Group::X25519MlKem768],
            vec![Group::Secp256r1MlKem768],
            // All that s2n-tls does with ML-DSA.
            vec![Group::X25519MlKem768, Group::Secp256r1],
        ] {
            for name in StackName::ALL {
                let config = TlsConfig {
                    client: name,
                    server: name,
                    key_shares: key_shares.clone(),
                    ..TlsConfig::new(key_shares[0], &chain)
                };
                // What it can't do is no row.
                let Ok(stack) = stack(&config) else { continue };
                let handshake = handshake_in_memory(stack.as_ref()).unwrap();
                let seen = handshake.observer.observe(&handshake.client.key_log());
                let shares: Vec<_> = key_shares.iter().map(|group| group.name()).collect();
                let suite = seen.cipher_suite.and_then(names::cipher_suite).unwrap();
                cases.push(Case {
                    name,
                    stack,
                    label: format!("{key} | {} | {suite}", shares.join(" + ")),
                    client: Vec::new(),
                    server: Vec::new(),
                });
            }
        }
    }
    for round in 0..ROUNDS + ROUNDS / 10 {
        for case in &mut cases {
            let (client, server) = (case.stack.client().unwrap(), case.stack.server().unwrap());
            let steps = time_handshake(client, server, &mut cpu_time).unwrap();
            // The first rounds only warm up.
            if round >= ROUNDS / 10 {
                case.client.push(steps.client_hello + steps.client_finish);
                case.server.push(steps.server_flight + steps.server_finish);
            }
        }
    }
    for name in StackName::ALL {
        println!(
            "{name}: {}",
            lastbyte_tls::version(name).unwrap_or("not built in".to_owned())
        );
    }
    println!("n = {ROUNDS} each, medians with 95 % intervals\n");
    println!(
        "| chain | key shares | cipher suite | stack | client µs | server µs | per CPU second |"
    );
    println!("|---|---|---|---|--:|--:|--:|");
    let microseconds = |values: &[Duration]| {
        let [median, low, high] = median(values).map(|value| value.as_secs_f64() * 1e6);
        format!("{median:.0} ({low:.0}-{high:.0})")
    };
    for case in &cases {
        let both: Vec<_> = case
            .client
            .iter()
            .zip(&case.server)
            .map(|(a, b)| *a + *b)
            .collect();
        let [rate, high, low] = median(&both).map(|value| 1.0 / value.as_secs_f64());
        println!(
            "| {} | {} | {} | {} | {rate:.0} ({low:.0}-{high:.0}) |",
            case.label,
            case.name,
            microseconds(&case.client),
            microseconds(&case.server),
        );
    }
}

/// The same connections without the trait.
mod direct {
    use super::*;

    /// One whole connection, from making its two ends to dropping them.
    type Connect = Box<dyn Fn()>;

    pub(super) fn compare() {
        const PAIRS: usize = 2000;
        println!(
            "One connection, with a record in each direction: pairs taken in turn, n = {PAIRS}."
        );
        println!(
            "The medians of each, and the median of the pairs' differences with its interval\n"
        );
        println!("| stack | chain | directly µs | by the trait µs | difference |");
        println!("|---|---|--:|--:|--:|");
        for key in [KeyAlgorithm::EcdsaP256, KeyAlgorithm::MlDsa65] {
            let chain = chain(key);
            let mut direct: Vec<(StackName, Connect)> = vec![(StackName::OpenSsl, openssl(&chain))];
            // By itself, rustls-openssl has no ML-DSA.
            #[cfg(feature = "rustls")]
            if key == KeyAlgorithm::EcdsaP256 {
                direct.push((StackName::Rustls, rustls(&chain)));
            }
            direct.reverse();
            for (name, direct) in direct {
                let by_trait = by_trait(name, &chain);
                let time = |connect: &Connect| {
                    let start = cpu_time();
                    connect();
                    cpu_time() - start
                };
                let mut times = [Vec::new(), Vec::new()];
                let mut ratios = Vec::new();
                for pair in 0..PAIRS + PAIRS / 10 {
                    // Each is the first in every other pair.
                    let (one, other) = match pair % 2 {
                        0 => {
                            let one = time(&direct);
                            (one, time(&by_trait))
                        }
                        _ => {
                            let other = time(&by_trait);
                            (time(&direct), other)
                        }
                    };
                    if pair >= PAIRS / 10 {
                        times[0].push(one);
                        times[1].push(other);
                        ratios.push(other.as_secs_f64() / one.as_secs_f64() - 1.0);
                    }
                }
                ratios.sort_by(f64::total_cmp);
                let spread = (0.98 * (PAIRS as f64).sqrt()) as usize;
                let at = |rank: usize| 100.0 * ratios[rank];
                let [one, other] = times.map(|times| median(&times)[0].as_secs_f64() * 1e6);
                println!(
                    "| {name} | {key} | {one:.1} | {other:.1} | {:+.2} % ({:+.2} to {:+.2}) |",
                    at(PAIRS / 2),
                    at(PAIRS / 2 - spread),
                    at(PAIRS / 2 + spread),
                );
            }
        }
    }

    fn by_trait(name: StackName, chain: &Chain) -> Connect {
        let stack = stack(&TlsConfig {
            client: name,
            server: name,
            ..TlsConfig::new(Group::X25519MlKem768, chain)
        })
        .unwrap();
        Box::new(move || {
            let mut client = stack.client().unwrap();
            let mut server = stack.server().unwrap();
            let (mut bytes, mut buffer) = (Vec::new(), [0; 100]);
            client.advance().unwrap();
            client.transmit(&mut bytes);
            server.receive(&bytes);
            server.advance().unwrap();
            bytes.clear();
            server.transmit(&mut bytes);
            client.receive(&bytes);
            client.advance().unwrap();
            client.write_record(b"request").unwrap();
            bytes.clear();
            client.transmit(&mut bytes);
            server.receive(&bytes);
            server.advance().unwrap();
            assert_eq!(server.read(&mut buffer).unwrap(), 7);
            server.write_record(b"response").unwrap();
            bytes.clear();
            server.transmit(&mut bytes);
            client.receive(&bytes);
            assert_eq!(client.read(&mut buffer).unwrap(), 8);
        })
    }

    use std::io::{self, Read, Write};

    /// The end of what would be a socket.
    #[derive(Default, Debug)]
    struct End {
        incoming: io::Cursor<Vec<u8>>,
        outgoing: Vec<u8>,
    }

    impl End {
        fn take_from(&mut self, peer: &mut End) {
            let incoming = self.incoming.get_mut();
            incoming.clear();
            std::mem::swap(incoming, &mut peer.outgoing);
            self.incoming.set_position(0);
        }
    }

    impl Read for End {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.incoming.read(buffer)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                length => Ok(length),
            }
        }
    }

    impl Write for End {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.outgoing.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn openssl(chain: &Chain) -> Connect {
        use openssl::ssl::{
            Ssl, SslContext, SslMethod, SslMode, SslSessionCacheMode, SslStream, SslVerifyMode,
            SslVersion,
        };
        let context = |method| {
            let mut context = SslContext::builder(method).unwrap();
            context
                .set_min_proto_version(Some(SslVersion::TLS1_3))
                .unwrap();
            context.set_groups_list("X25519MLKEM768").unwrap();
            context.set_session_cache_mode(SslSessionCacheMode::OFF);
            context.set_security_level(2);
            context
        };
        let mut client = context(SslMethod::tls_client());
        let mut roots = openssl::x509::store::X509StoreBuilder::new().unwrap();
        roots.add_cert(chain.root().clone()).unwrap();
        client.set_cert_store(roots.build());
        client.set_verify(SslVerifyMode::PEER);
        let client = client.build();
        let mut server = context(SslMethod::tls_server());
        server.set_mode(SslMode::NO_AUTO_CHAIN);
        server.set_certificate(&chain.certificates()[0]).unwrap();
        server
            .add_extra_chain_cert(chain.certificates()[1].clone())
            .unwrap();
        server.set_private_key(chain.key()).unwrap();
        server.set_num_tickets(0).unwrap();
        let server = server.build();
        let name = chain.server_name().to_owned();
        Box::new(move || {
            let mut ssl = Ssl::new(&client).unwrap();
            ssl.set_hostname(&name).unwrap();
            ssl.param_mut().set_host(&name).unwrap();
            ssl.set_connect_state();
            let mut client = SslStream::new(ssl, End::default()).unwrap();
            let mut ssl = Ssl::new(&server).unwrap();
            ssl.set_accept_state();
            let mut server = SslStream::new(ssl, End::default()).unwrap();
            let mut buffer = [0; 100];
            client.do_handshake().unwrap_err();
            server.get_mut().take_from(client.get_mut());
            server.do_handshake().unwrap_err();
            client.get_mut().take_from(server.get_mut());
            client.do_handshake().unwrap();
            client.ssl_write(b"request").unwrap();
            server.get_mut().take_from(client.get_mut());
            server.do_handshake().unwrap();
            assert_eq!(server.ssl_read(&mut buffer).unwrap(), 7);
            server.ssl_write(b"response").unwrap();
            client.get_mut().take_from(server.get_mut());
            assert_eq!(client.ssl_read(&mut buffer).unwrap(), 8);
        })
    }

    #[cfg(feature = "rustls")]
    fn rustls(chain: &Chain) -> Connect {
        use std::sync::Arc;

        use ::rustls::client::WebPkiServerVerifier;
        use ::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
        use ::rustls::{
            ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig,
            ServerConnection, version,
        };
        use ::rustls_openssl::{ALL_CIPHER_SUITES, custom_provider, kx_group::X25519MLKEM768};
        let suites = ALL_CIPHER_SUITES.to_vec();
        let provider = Arc::new(custom_provider(suites, vec![X25519MLKEM768]));
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(chain.root().to_der().unwrap()))
            .unwrap();
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone());
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_webpki_verifier(verifier.build().unwrap())
            .with_no_client_auth();
        client.resumption = ::rustls::client::Resumption::disabled();
        let certificates = chain.certificates().iter();
        let certificates = certificates.map(|one| CertificateDer::from(one.to_der().unwrap()));
        let key = PrivatePkcs8KeyDer::from(chain.key().private_key_to_pkcs8().unwrap());
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates.collect(), key.into())
            .unwrap();
        server.send_tls13_tickets = 0;
        let (client, server) = (Arc::new(client), Arc::new(server));
        let name = ServerName::try_from(chain.server_name().to_owned()).unwrap();
        let carry = |from: &mut Connection, to: &mut Connection| {
            let mut bytes = Vec::new();
            while from.wants_write() {
                from.write_tls(&mut bytes).unwrap();
            }
            let mut bytes = bytes.as_slice();
            while !bytes.is_empty() {
                to.read_tls(&mut bytes).unwrap();
                to.process_new_packets().unwrap();
            }
        };
        Box::new(move || {
            let client = ClientConnection::new(client.clone(), name.clone()).unwrap();
            let mut client = Connection::from(client);
            let mut server = Connection::from(ServerConnection::new(server.clone()).unwrap());
            let mut buffer = [0; 100];
            carry(&mut client, &mut server);
            carry(&mut server, &mut client);
            client.writer().write_all(b"request").unwrap();
            carry(&mut client, &mut server);
            assert_eq!(server.reader().read(&mut buffer).unwrap(), 7);
            server.writer().write_all(b"response").unwrap();
            carry(&mut server, &mut client);
            assert_eq!(client.reader().read(&mut buffer).unwrap(), 8);
        })
    }
}
