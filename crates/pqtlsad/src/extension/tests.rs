#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn data(name: &[u8]) -> Vec<u8> {
    let length = name.len() as u16;
    let list = [&[0], &length.to_be_bytes()[..], name].concat();
    [&(list.len() as u16).to_be_bytes()[..], &list].concat()
}

#[test]
fn one_host_name_is_read() {
    let name = server_name(&data(b"Server.Example"));
    assert_eq!(name.as_deref(), Some("server.example"));
}

#[test]
fn nothing_else_is() {
    let good = data(b"server.example");
    for end in 0..good.len() {
        assert_eq!(server_name(&good[..end]), None);
    }
    assert_eq!(server_name(&[&good[..], &[0]].concat()), None);
    assert_eq!(server_name(&data(b"")), None);
    assert_eq!(server_name(&data("sérver.example".as_bytes())), None);
    let mut other_kind = good;
    other_kind[2] = 1;
    assert_eq!(server_name(&other_kind), None);
}

#[test]
fn numbers() {
    assert_eq!("64".parse(), Ok(ExtensionType::DEFAULT));
    let bad: Result<ExtensionType, _> = "65536".parse();
    assert_eq!(
        bad.unwrap_err().to_string(),
        "unknown extension \"65536\": use a number from 0 to 65535"
    );
}

proptest! {
    #[test]
    fn what_is_read_is_what_was_said(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Some(name) = server_name(&bytes) {
            prop_assert!(bytes.eq_ignore_ascii_case(&data(name.as_bytes())));
        }
    }
}
