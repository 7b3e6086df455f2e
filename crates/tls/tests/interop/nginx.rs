//! Debian's nginx with the system's OpenSSL: classical groups and chains.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use lastbyte_tls::Group;

use crate::harness::{Arm, Program, classical, classical_arms, get, refuse, stranger, tool};

#[test]
fn our_client_speaks_with_nginx() {
    for arm in classical_arms() {
        let server = Nginx::start(&arm);
        arm.expect(&get(&arm, server.address, "hello from nginx"));
    }
}

#[test]
fn our_client_refuses_an_unknown_root_of_nginx() {
    let (ours, other) = (classical(Group::X25519), stranger(Group::X25519));
    let nginx = Nginx::start(&ours);
    assert_eq!(refuse(&other, nginx.address), "unknown_ca");
}

struct Nginx {
    address: SocketAddr,
    _program: Program,
}

impl Nginx {
    fn start(arm: &Arm) -> Nginx {
        // nginx takes no port of the kernel's choice, but a socket that listens already, as it
        // gives one to its successor. So nobody has to wait until it is ready. Without a master
        // process, it would not take it.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let configuration = arm.file("nginx.conf");
        std::fs::write(&configuration, configuration_of(arm, address)).unwrap();
        let mut command = tool("nginx");
        command
            .arg("-e")
            .arg("stderr")
            .arg("-c")
            .arg(configuration)
            .env("NGINX", "0;")
            .stdin(Stdio::from(OwnedFd::from(listener)));
        Nginx {
            address,
            _program: Program::start(&mut command),
        }
    }
}

fn configuration_of(arm: &Arm, address: SocketAddr) -> String {
    let (chain, key) = (arm.chain_file(), arm.key_file());
    let (chain, key, pid) = (chain.display(), key.display(), arm.file("nginx.pid"));
    format!(
        r#"
daemon off;
pid {pid};
error_log stderr;
events {{}}
http {{
    access_log off;
    server {{
        listen {address} ssl;
        ssl_protocols TLSv1.3;
        ssl_ecdh_curve {group};
        ssl_certificate {chain};
        ssl_certificate_key {key};
        return 200 "hello from nginx";
    }}
}}
"#,
        group = arm.openssl_group(),
        pid = pid.display(),
    )
}
