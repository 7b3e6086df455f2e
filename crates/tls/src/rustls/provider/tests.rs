//! What OpenSSL does for rustls when the peer does not do its part.
#![allow(clippy::unwrap_used)]

use ::rustls::SignatureScheme;
use ::rustls::pki_types::PrivatePkcs8KeyDer;
use lastbyte_pki::KeyAlgorithm;

use super::*;
use crate::fixtures::{observe, plain_chain};
use crate::observer::Message;
use crate::{Alert, StackName, TlsConfig, TlsError, handshake_in_memory, stack};

#[test]
fn a_ticket_is_taken_as_it_was_given() {
    let (ticketer, other) = (ticketer().unwrap(), ticketer().unwrap());
    for state in [0, 1, 15, 16, 1000].map(|length| vec![7; length]) {
        let ticket = ticketer.encrypt(&state).unwrap();
        // A name, an IV, whole blocks of AES and a MAC (RFC 5077, 4).
        assert_eq!(ticket.len(), 16 + 16 + (state.len() / 16 + 1) * 16 + 32);
        assert_ne!(ticket, ticketer.encrypt(&state).unwrap());
        assert_eq!(ticketer.decrypt(&ticket), Some(state));
        assert_eq!(other.decrypt(&ticket), None);
        for length in 0..ticket.len() {
            assert_eq!(ticketer.decrypt(&ticket[..length]), None, "{length}");
        }
        for place in 0..ticket.len() {
            let mut altered = ticket.clone();
            altered[place] ^= 1;
            assert_eq!(ticketer.decrypt(&altered), None, "{place}");
        }
    }
}

#[test]
fn ml_dsa_signs_what_it_verifies() {
    let algorithms = [
        KeyAlgorithm::MlDsa44,
        KeyAlgorithm::MlDsa65,
        KeyAlgorithm::MlDsa87,
    ];
    for (algorithm, (scheme, verify)) in algorithms.into_iter().zip(ml_dsa::SCHEMES) {
        let chain = plain_chain(algorithm);
        let public = chain.key().raw_public_key().unwrap();
        let pkcs8 = chain.key().private_key_to_pkcs8().unwrap();
        let key = Keys.load_private_key(PrivatePkcs8KeyDer::from(pkcs8).into());
        let key = key.unwrap();
        let classical = [SignatureScheme::ECDSA_NISTP256_SHA256];
        assert!(key.choose_scheme(&classical).is_none());
        let signer = key.choose_scheme(&[classical[0], scheme]).unwrap();
        assert_eq!(signer.scheme(), scheme);
        let signature = signer.sign(b"message").unwrap();
        assert_eq!(signature.len(), algorithm.signature_bytes());
        let verified = |key: &[u8], message: &[u8], signature: &[u8]| {
            verify[0].verify_signature(key, message, signature).is_ok()
        };
        assert!(verified(&public, b"message", &signature));
        assert!(!verified(&public, b"massage", &signature));
        assert!(!verified(&public, b"message", &signature[1..]));
        assert!(!verified(&public, b"message", b""));
        assert!(!verified(&public[1..], b"message", &signature));
        assert!(!verified(b"", b"message", &signature));
        let mut altered = signature.clone();
        altered[100] ^= 1;
        assert!(!verified(&public, b"message", &altered));
    }
}

#[test]
fn a_share_of_another_length_is_refused() {
    for group in Group::ALL {
        let Some(found) = find_group(group) else {
            assert_eq!(group, Group::Secp384r1MlKem1024);
            continue;
        };
        let share = found.start().unwrap().pub_key().to_vec();
        assert_eq!(share.len(), group.client_share_bytes(), "{group}");
        let server = found.start_and_complete(&share).unwrap();
        assert_eq!(server.pub_key.len(), group.server_share_bytes(), "{group}");
        let longer = |share: &[u8]| [share, &[0]].concat();
        let shorter = |share: &[u8]| share[..share.len() - 1].to_vec();
        for wrong in [longer(&share), shorter(&share), vec![]] {
            assert!(found.start_and_complete(&wrong).is_err(), "{group}");
        }
        let answer = &server.pub_key;
        for wrong in [longer(answer), shorter(answer), vec![]] {
            assert!(found.start().unwrap().complete(&wrong).is_err(), "{group}");
        }
    }
}

/// Three suites, thirteen signatures and one group, as rustls 0.23 offers on AWS-LC, too.
#[test]
fn a_client_hello_is_as_long_as_ever() {
    const BESIDES_THE_SHARE: usize = 188;
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    for group in Group::ALL {
        let config = TlsConfig {
            client: StackName::Rustls,
            server: StackName::Rustls,
            ..TlsConfig::new(group, &chain)
        };
        let Ok(stack) = stack(&config) else {
            assert_eq!(group, Group::Secp384r1MlKem1024);
            continue;
        };
        assert_eq!(
            observe(stack.as_ref()).bytes(Message::ClientHello),
            Some(BESIDES_THE_SHARE + group.client_share_bytes()),
            "{group}"
        );
    }
}

#[test]
fn a_record_that_can_not_be_decrypted_is_answered() {
    const BAD_RECORD_MAC: Alert = Alert(20);
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let config = TlsConfig {
        client: StackName::Rustls,
        server: StackName::Rustls,
        ..TlsConfig::new(Group::X25519, &chain)
    };
    let stack = stack(&config).unwrap();
    let mut handshake = handshake_in_memory(stack.as_ref()).unwrap();
    let (mut record, mut buffer) = (Vec::new(), [0; 100]);
    handshake.client.write_record(b"request").unwrap();
    handshake.client.transmit(&mut record);
    *record.last_mut().unwrap() ^= 1;
    handshake.server.receive(&record);
    let error = handshake.server.read(&mut buffer).unwrap_err();
    assert!(matches!(error, TlsError::Protocol { .. }), "{error}");
    record.clear();
    handshake.server.transmit(&mut record);
    handshake.client.receive(&record);
    let refused = handshake.client.read(&mut buffer);
    assert_eq!(refused, Err(TlsError::Refused(BAD_RECORD_MAC)));
}
