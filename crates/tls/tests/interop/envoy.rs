//! Envoy on BoringSSL, which takes keys of ML-DSA by their seed alone.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_tls::Group;

use crate::harness::{
    Arm, PATIENCE, Program, arms, get, installed, post_quantum, refuse, stranger,
};

/// What BoringSSL has of ours.
const GROUPS: [Group; 4] = [
    Group::Secp256r1,
    Group::X25519,
    Group::Secp384r1,
    Group::X25519MlKem768,
];

#[test]
fn our_client_speaks_with_envoy() {
    for arm in arms(&GROUPS, Group::X25519MlKem768) {
        let server = Envoy::start(&arm);
        arm.expect(&get(&arm, server.address, "hello from Envoy"));
    }
}

#[test]
fn our_client_refuses_an_unknown_root_of_envoy() {
    let (ours, other) = (post_quantum(), stranger(Group::X25519MlKem768));
    let envoy = Envoy::start(&ours);
    assert_eq!(refuse(&other, envoy.address), "unknown_ca");
}

struct Envoy {
    address: SocketAddr,
    _program: Program,
}

impl Envoy {
    fn start(arm: &Arm) -> Envoy {
        // It takes a port of the kernel's choice, and tells it to its administrator alone. So it gets one that was free just now.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let configuration = arm.file("envoy.yaml");
        std::fs::write(&configuration, configuration_of(arm, address)).unwrap();
        let mut command = installed("envoy");
        command
            .arg("--config-path")
            .arg(configuration)
            // Else processes of one machine share memory by a number.
            .args(["--disable-hot-restart", "--concurrency", "1"])
            .args(["--log-level", "error"]);
        let program = Program::start(&mut command);
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "Envoy does not listen");
            thread::sleep(Duration::from_millis(20));
        }
        Envoy {
            address,
            _program: program,
        }
    }
}

fn configuration_of(arm: &Arm, address: SocketAddr) -> String {
    let group = match arm.group {
        Group::Secp256r1 => "P-256",
        Group::Secp384r1 => "P-384",
        Group::X25519 => "X25519",
        _ => "X25519MLKEM768",
    };
    let (chain, key) = (arm.chain_file(), arm.key_file());
    let (chain, key) = (chain.display(), key.display());
    let (ip, port) = (address.ip(), address.port());
    let types = "type.googleapis.com/envoy.extensions";
    format!(
        r#"
static_resources:
  listeners:
  - address: {{ socket_address: {{ address: {ip}, port_value: {port} }} }}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": {types}.transport_sockets.tls.v3.DownstreamTlsContext
          common_tls_context:
            tls_params:
              tls_minimum_protocol_version: TLSv1_3
              tls_maximum_protocol_version: TLSv1_3
              ecdh_curves: [{group}]
            tls_certificates:
            - certificate_chain: {{ filename: {chain} }}
              private_key: {{ filename: {key} }}
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": {types}.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{ "@type": {types}.filters.http.router.v3.Router }}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: / }}
                direct_response: {{ status: 200, body: {{ inline_string: hello from Envoy }} }}
"#
    )
}
