//! Certificate compression (RFC 8879): the server compresses its Certificate message, and a client that has
//! one its own, with an algorithm that both have.

use lastbyte_sizes::{
    ABRIDGED, CertificateCompression, ChainSpec, Compressions, Resumption, UnknownCompression,
};

use super::{Certificates, Delivery, Kind, OnWire, Spec, Way, check_stacks};
use crate::row::{Compression, Dns, Wire};
use crate::study::Arm;

/// What each side can compress with, and decompress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// The server's, the preferred first.
    pub server: Vec<CertificateCompression>,
    /// The client's, if they are not the server's.
    pub client: Option<Vec<CertificateCompression>>,
}

const NAME: &str = "compressed";
const COMPRESSION: &str = "compression";
const CLIENT_COMPRESSION: &str = "client_compression";

pub(super) static SPEC: Spec = Spec {
    names: || vec![NAME],
    keys: &[COMPRESSION, CLIENT_COMPRESSION],
    subject: "certificates that are compressed",
    named: |name| (name == NAME).then(|| Delivery::Compressed(Compressed::default())),
    ways: &[Way {
        said: None,
        by: "by compress_certificate",
    }],
    trace: |wire, _| {
        let both = [wire.compression, wire.client_compression];
        let mut compressed = both.into_iter().flatten();
        let found = compressed.any(|compression| compression.algorithm != ABRIDGED);
        found.then_some("got certificates compressed")
    },
};

impl Default for Compressed {
    /// Brotli on both sides.
    fn default() -> Self {
        Self {
            server: vec![CertificateCompression::Brotli],
            client: None,
        }
    }
}

impl Compressed {
    /// What both sides have.
    pub fn of_both(&self) -> Compressions {
        Compressions {
            server: self.server.clone(),
            client: self.client().to_vec(),
        }
    }

    fn client(&self) -> &[CertificateCompression] {
        self.client.as_ref().unwrap_or(&self.server)
    }

    /// Whether both sides have what a certificate was compressed with.
    fn check(&self, whose: &str, compression: Option<Compression>) -> Result<(), String> {
        let Some(compression) = compression else {
            return Err(format!("got {whose} certificates uncompressed"));
        };
        let algorithm = CertificateCompression::of_code_point(compression.algorithm);
        let both_have = algorithm.is_some_and(|algorithm| {
            self.server.contains(&algorithm) && self.client().contains(&algorithm)
        });
        match both_have {
            true => Ok(()),
            false => Err(format!(
                "got {whose} certificates compressed with {}, which the arm does not ask for",
                algorithm.map_or(compression.algorithm.to_string(), |known| known.to_string())
            )),
        }
    }
}

impl Kind for Compressed {
    fn name(&self) -> &'static str {
        NAME
    }

    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let algorithms = parse(value)?;
        match key {
            COMPRESSION => self.server = algorithms,
            _ => self.client = Some(algorithms),
        }
        Ok(())
    }

    fn check_arm(&self, arm: &Arm) -> Result<(), String> {
        let is_common = |algorithm| self.client().contains(algorithm);
        if !self.server.iter().any(is_common) {
            return Err(format!(
                "the server compresses with {} and the client takes {}, so nothing would be compressed: \
                 name an algorithm of both in {COMPRESSION}= and {CLIENT_COMPRESSION}=",
                list(&self.server),
                list(self.client()),
            ));
        }
        match arm.resumption {
            Resumption::Full => Ok(()),
            Resumption::Ticket | Resumption::EarlyData => Err(
                "a resumed session has no certificates to compress: leave resume= out".to_owned(),
            ),
        }
    }

    /// What a stack costs is more than what compression saves.
    fn check_baseline(&self, arm: &Arm, baseline: &Arm) -> Result<(), String> {
        check_stacks(arm, baseline, "is compressed")
    }

    fn words(&self) -> String {
        format!(
            "compressed with {}, taken with {}",
            list(&self.server),
            list(self.client())
        )
    }

    fn arithmetic(&self, _: &ChainSpec) -> Result<Vec<OnWire>, &'static str> {
        Err("what compression leaves")
    }

    fn check_handshake(&self, _: &Arm, wire: &Wire, _: &Dns) -> Result<Certificates, String> {
        self.check("its", wire.compression)?;
        if wire.client_certificate_bytes() > 0 {
            self.check("its client's", wire.client_compression)?;
        }
        Ok(Certificates::Whole)
    }
}

/// Algorithms such as `brotli+zlib`.
fn parse(text: &str) -> Result<Vec<CertificateCompression>, String> {
    let mut algorithms = Vec::new();
    if text.contains(',') {
        return Err(format!("write several as {}", text.replace(',', "+")));
    }
    for word in text.split('+') {
        let algorithm = word
            .parse()
            .map_err(|unknown: UnknownCompression| unknown.hint)?;
        if algorithms.contains(&algorithm) {
            return Err(format!("name {algorithm} once"));
        }
        algorithms.push(algorithm);
    }
    Ok(algorithms)
}

fn list(algorithms: &[CertificateCompression]) -> String {
    let names = algorithms.iter().map(|algorithm| algorithm.name());
    names.collect::<Vec<_>>().join(" or ")
}
