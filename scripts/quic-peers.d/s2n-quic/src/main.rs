//! A server on s2n-quic with rustls, and with just enough of HTTP/3 to answer a request. It takes JSON in a file:
//!
//!     lastbyte-s2n-quic server FILE.json

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::KeyLog;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use s2n_quic::provider::tls::rustls as tls;
use serde::Deserialize;

/// A server, as lastbyte describes it.
#[derive(Deserialize)]
struct Described {
    address: String,
    group: String,
    secrets: PathBuf,
    chain: PathBuf,
    key: PathBuf,
}

/// The response to any request: HEADERS with `:status: 200` (RFC 9114, RFC 9204).
const RESPONSE: &[u8] = &[1, 3, 0, 0, 0xd9];
/// A control stream with nothing in its SETTINGS.
const CONTROL: &[u8] = &[0, 4, 0];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["version"] => {
            println!("{}", version());
            Ok(())
        }
        ["server", file] => serve(serde_json::from_str(&fs::read_to_string(file)?)?).await,
        _ => Err("usage: lastbyte-s2n-quic server FILE.json".into()),
    }
}

/// What it is made of: `1.91.0 (rustls 0.23.46)`.
fn version() -> String {
    let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"));
    let of = |name: &str| {
        let package = lock.split("[[package]]").find(|package| package.contains(&format!("name = \"{name}\"")));
        let version = package.and_then(|package| package.split("version = \"").nth(1)?.split('"').next());
        version.unwrap_or("unknown")
    };
    format!("{} (rustls {})", of("s2n-quic"), of("rustls"))
}

async fn serve(described: Described) -> Result<(), Box<dyn Error>> {
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups.retain(|group| format!("{:?}", group.name()).eq_ignore_ascii_case(&described.group));
    if provider.kx_groups.is_empty() {
        return Err(format!("unknown group {:?}", described.group).into());
    }
    let chain: Vec<_> = CertificateDer::pem_file_iter(&described.chain)?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file(&described.key)?;
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.key_log = Arc::new(Secrets::open(&described.secrets)?);
    #[allow(deprecated, reason = "no other way takes a configuration with a key log")]
    let tls = tls::Server::from(config);
    let mut server = s2n_quic::Server::builder().with_tls(tls)?.with_io(described.address.as_str())?.start()?;
    while let Some(mut connection) = server.accept().await {
        tokio::spawn(async move {
            let mut control = connection.open_send_stream().await?;
            control.send(CONTROL.into()).await?;
            while let Some(mut stream) = connection.accept_bidirectional_stream().await? {
                stream.send(RESPONSE.into()).await?;
                stream.finish()?;
                while stream.receive().await?.is_some() {}
            }
            // It lasts as long as the connection.
            drop(control);
            Ok::<_, s2n_quic::stream::Error>(())
        });
    }
    Ok(())
}

/// The secrets of connections, in the format that tshark reads.
#[derive(Debug)]
struct Secrets(Mutex<File>);

impl Secrets {
    fn open(path: &Path) -> std::io::Result<Secrets> {
        Ok(Secrets(Mutex::new(File::options().create(true).append(true).open(path)?)))
    }
}

impl KeyLog for Secrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        if let Ok(mut file) = self.0.lock() {
            let _ = writeln!(file, "{label} {} {}", hex(client_random), hex(secret));
        }
    }
}
