//! What a client of PQTLS-AD takes for the server's certificates: with any offer, any answer to it and any certificates,
//! it only connects to whom has the end-entity's key and certificate.
#![no_main]

use std::sync::{Arc, LazyLock, OnceLock};
use std::time::SystemTime;

use lastbyte_fuzz::{Pipe, change, pieces};
use lastbyte_pki::{ChainSpec, KeyAlgorithm, RootDelivery, Store};
use libfuzzer_sys::fuzz_target;
use openssl::ex_data::Index;
use openssl::pkey::{PKey, Private};
use openssl::ssl::{
    ErrorCode, ExtensionContext, Ssl, SslContext, SslContextBuilder, SslMethod, SslMode,
    SslSessionCacheMode, SslStream, SslVerifyMode, SslVersion,
};
use openssl::x509::X509;
use openssl::x509::store::{X509Store, X509StoreBuilder};
use pqtlsad::extension::ExtensionType;
use pqtlsad::openssl::{EndEntity, client, server};
use pqtlsad::record::Delivered;
use pqtlsad::server::{Chain, Chains, SharedChains};
use pqtlsad::validate::{Algorithms, Offer, Trust, validate};

const NAME: &str = "server.example";

struct World {
    client: SslContext,
    offers: Vec<Offer>,
    /// Servers with the mechanism: of the chain, and of somebody else with a certificate for the name.
    servers: Vec<SslContext>,
    /// A server that says and sends whatever it is told.
    liar: SslContext,
    ders: Vec<Vec<u8>>,
    key: PKey<Private>,
}

/// What a liar says.
static SAID: OnceLock<Index<Ssl, Vec<u8>>> = OnceLock::new();

fn context(method: SslMethod) -> SslContextBuilder {
    let mut context = SslContext::builder(method).unwrap();
    context
        .set_min_proto_version(Some(SslVersion::TLS1_3))
        .unwrap();
    context.set_session_cache_mode(SslSessionCacheMode::OFF);
    context.set_mode(SslMode::NO_AUTO_CHAIN);
    // The least work: what is exchanged decides nothing here.
    context.set_groups_list("X25519").unwrap();
    context
}

fn anchors(root: &X509) -> X509Store {
    let mut anchors = X509StoreBuilder::new().unwrap();
    anchors.add_cert(root.clone()).unwrap();
    anchors.build()
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folders = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let spec = ChainSpec {
        root: RootDelivery::Sent,
        ..ChainSpec::new(KeyAlgorithm::EcdsaP256)
    };
    let [own, foreign] =
        [0, 1].map(|index: usize| Store::open(folders[index].path()).chain(&spec).unwrap());
    let chain = |of: &lastbyte_pki::Chain| {
        Chain::new(of.certificates().to_vec(), of.key().clone()).unwrap()
    };
    let trusted = anchors(own.root());
    let offers = (1..=3).map(|count| {
        let chain = chain(&own);
        let delivered = Delivered {
            part: chain.part(count),
            list: chain.topmost(count).unwrap(),
        };
        let trust = Trust {
            anchors: &trusted,
            at: SystemTime::now(),
            algorithms: Algorithms::All,
        };
        validate(delivered, NAME, &trust).unwrap()
    });
    let offers = offers.collect();
    let mut servers = Vec::new();
    for of in [&own, &foreign] {
        for end_entity in [EndEntity::RawPublicKey, EndEntity::Carrier] {
            let chains = Arc::new(SharedChains::new(Chains::new(vec![chain(of)])));
            let mut context = context(SslMethod::tls_server());
            context.set_num_tickets(0).unwrap();
            server::install(&mut context, chains, ExtensionType::DEFAULT, end_entity).unwrap();
            servers.push(context.build());
        }
    }
    let said = *SAID.get_or_init(|| Ssl::new_ex_index().unwrap());
    let mut liar = context(SslMethod::tls_server());
    liar.set_num_tickets(0).unwrap();
    let hellos = ExtensionContext::CLIENT_HELLO
        | ExtensionContext::TLS1_3_SERVER_HELLO
        | ExtensionContext::TLS1_3_ONLY;
    liar.add_custom_ext(
        ExtensionType::DEFAULT.0,
        hellos,
        move |ssl, _, _| Ok(ssl.ex_data(said).cloned()),
        |_, _, _, _| Ok(()),
    )
    .unwrap();
    let mut client = context(SslMethod::tls_client());
    client.set_cert_store(anchors(own.root()));
    client.set_verify(SslVerifyMode::PEER);
    client::install(&mut client, ExtensionType::DEFAULT).unwrap();
    World {
        client: client.build(),
        offers,
        servers,
        liar: liar.build(),
        ders: (own.certificates().iter())
            .map(|certificate| certificate.to_der().unwrap())
            .collect(),
        key: own.key().clone(),
    }
});

fuzz_target!(|data: &[u8]| {
    let Some(([what, how], data)) = data.split_first_chunk() else {
        return;
    };
    let world = &*WORLD;
    let end_entity = match what & 4 {
        0 => EndEntity::RawPublicKey,
        _ => EndEntity::Carrier,
    };
    let mut ssl = Ssl::new(&world.client).unwrap();
    ssl.set_hostname(NAME).unwrap();
    ssl.param_mut().set_host(NAME).unwrap();
    // None, or one of the three.
    if let Some(index) = usize::from(what & 3).checked_sub(1) {
        client::offer(&mut ssl, world.offers[index].clone(), end_entity).unwrap();
    }
    let server = match world.servers.get(usize::from(how % 8)) {
        Some(server) => Some(Ssl::new(server).unwrap()),
        None => liar(world, how / 8, data),
    };
    let Some(server) = server else {
        return;
    };
    let [client_end, server_end] = Pipe::pair();
    let mut client = SslStream::new(ssl, client_end).unwrap();
    let mut server = SslStream::new(server, server_end).unwrap();
    for _ in 0..6 {
        let ends = [client.connect(), server.accept()];
        let is_over = |end: &Result<(), openssl::ssl::Error>| match end {
            Ok(()) => false,
            Err(error) => error.code() != ErrorCode::WANT_READ,
        };
        if ends.iter().any(is_over) {
            return;
        }
        if ends.iter().all(Result::is_ok) {
            // Without a certificate, its key is the delivered end-entity's.
            if let Some(peer) = client.ssl().peer_certificate() {
                assert_eq!(peer.to_der().unwrap(), world.ders[0]);
            } else {
                let whole = world.offers[2].digest();
                assert_eq!(
                    client::answer(client.ssl()),
                    Some(pqtlsad::client::Answer::Digest(*whole))
                );
            }
            assert!(how % 8 < 2 || how % 8 > 3);
            return;
        }
    }
});

/// A server that says and sends what `data` tells, if it can.
fn liar(world: &World, echo: u8, data: &[u8]) -> Option<Ssl> {
    let mut ssl = Ssl::new(&world.liar).unwrap();
    let mut ders = world.ders.clone();
    let mut said = world
        .offers
        .get(usize::from(echo % 4))
        .map(|offer| offer.digest().as_bytes().to_vec());
    let mut sent = world.ders.len();
    for (tag, piece) in pieces(data).take(8) {
        match usize::from(tag % 8) {
            index @ 0..3 => change(&mut ders[index], piece),
            3 => ders.push(piece.to_vec()),
            4 => ders.swap(usize::from(tag / 8) % 3, 2),
            5 => sent = usize::from(tag / 8) % 5,
            6 => said.get_or_insert_default().extend_from_slice(piece),
            _ => change(said.get_or_insert_default(), piece),
        }
    }
    if let Some(said) = said {
        ssl.set_ex_data(*SAID.get()?, said);
    }
    let mut certificates = ders.iter().map(|der| X509::from_der(der));
    ssl.set_certificate(&*certificates.next()?.ok()?).ok()?;
    ssl.set_private_key(&world.key).ok()?;
    for certificate in certificates.take(sent.saturating_sub(1)) {
        ssl.add_chain_cert(certificate.ok()?).ok()?;
    }
    Some(ssl)
}
