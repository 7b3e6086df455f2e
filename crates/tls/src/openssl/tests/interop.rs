//! Against the `openssl` program, over the loopback interface.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lastbyte_pki::KeyAlgorithm;

use crate::fixtures::{openssl, plain_chain};
use crate::observer::{Observer, Side};
use crate::{Connection, Group, Progress, Stack, names};

#[test]
fn our_client_speaks_with_s_server() {
    let chain = plain_chain(KeyAlgorithm::Rsa2048);
    let folder = tempfile::tempdir().unwrap();
    let (end_entity, issuers) = chain.certificates().split_first().unwrap();
    let file = |name: &str, contents: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    };
    let certificate = file("certificate.pem", &end_entity.to_pem().unwrap());
    let issuers = file("issuers.pem", &issuers.first().unwrap().to_pem().unwrap());
    let key = file("key.pem", &chain.key().private_key_to_pem_pkcs8().unwrap());
    let mut server = Program::start(
        [
            "s_server",
            "-accept",
            "127.0.0.1:0",
            "-naccept",
            "1",
            "-tls1_3",
            "-rev",
        ],
        [
            ("-cert", &*certificate),
            ("-cert_chain", &*issuers),
            ("-key", &*key),
        ],
    );
    let address = server.line_after("ACCEPT ");

    let mut socket = Socket::new(TcpStream::connect(address).unwrap(), Side::Client);
    let mut client = openssl(Group::Secp256r1, &chain).client().unwrap();
    socket.shake_hands(client.as_mut());
    client.write_record(b"hello\n").unwrap();
    assert_eq!(socket.response(client.as_mut(), 6), b"olleh\n");

    let observation = socket.observer.observe(&client.key_log());
    assert_eq!(observation.group, Some(Group::Secp256r1.code_point()));
    assert_eq!(
        observation.certificate_bytes,
        Some(chain.certificate_message_bytes())
    );
    assert_eq!(
        observation.signature.and_then(names::signature_scheme),
        Some("rsa_pss_rsae_sha256")
    );
}

#[test]
fn our_server_speaks_with_s_client() {
    let chain = plain_chain(KeyAlgorithm::EcdsaP256);
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root.pem");
    std::fs::write(&root, chain.root().to_pem().unwrap()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let name = chain.server_name();
    let mut client = Program::start(
        [
            [
                "s_client", "-connect", &address, "-tls1_3", "-groups", "P-256", "-quiet",
            ]
            .as_slice(),
            &[
                "-servername",
                name,
                "-verify_hostname",
                name,
                "-verify_return_error",
            ],
        ]
        .concat(),
        [("-CAfile", &*root)],
    );

    let mut socket = Socket::new(listener.accept().unwrap().0, Side::Server);
    let mut server = openssl(Group::Secp256r1, &chain).server().unwrap();
    socket.shake_hands(server.as_mut());
    client
        .0
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"hello\n")
        .unwrap();
    assert_eq!(socket.response(server.as_mut(), 6), b"hello\n");
    server.write_record(b"goodbye\n").unwrap();
    socket.transmit(server.as_mut());
    assert_eq!(client.line_after("good"), "bye");

    let observation = socket.observer.observe(&server.key_log());
    assert_eq!(observation.server_name.as_deref(), Some(name));
    assert_eq!(observation.group, Some(Group::Secp256r1.code_point()));
    assert!(observation.client_finished_bytes.is_some());
}

/// The `openssl` program; it ends with the test.
struct Program(Child);

impl Program {
    fn start<'a>(
        arguments: impl AsRef<[&'a str]>,
        files: impl IntoIterator<Item = (&'a str, &'a Path)>,
    ) -> Program {
        let mut command = Command::new("openssl");
        command.args(arguments.as_ref());
        for (option, path) in files {
            command.arg(option).arg(path);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Program(
            command
                .spawn()
                .expect("this test needs the program openssl: apt install openssl"),
        )
    }

    /// What follows `start` on the first line of the output that begins with it.
    fn line_after(&mut self, start: &str) -> String {
        BufReader::new(self.0.stdout.as_mut().unwrap())
            .lines()
            .find_map(|line| line.unwrap().strip_prefix(start).map(str::to_owned))
            .expect("openssl ended without that line")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A TCP connection and an observer of it.
struct Socket {
    stream: TcpStream,
    side: Side,
    observer: Observer,
}

impl Socket {
    fn new(stream: TcpStream, side: Side) -> Socket {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Socket {
            stream,
            side,
            observer: Observer::default(),
        }
    }

    fn shake_hands(&mut self, connection: &mut dyn Connection) {
        loop {
            let progress = connection.advance().unwrap();
            self.transmit(connection);
            match progress {
                Progress::Handshaking => self.receive(connection),
                Progress::Established => break,
            }
        }
    }

    fn response(&mut self, connection: &mut dyn Connection, length: usize) -> Vec<u8> {
        self.transmit(connection);
        let mut response = Vec::new();
        let mut buffer = [0; 64];
        while response.len() < length {
            match connection.read(&mut buffer).unwrap() {
                0 => self.receive(connection),
                length => response.extend_from_slice(&buffer[..length]),
            }
        }
        response
    }

    fn transmit(&mut self, connection: &mut dyn Connection) {
        let mut bytes = Vec::new();
        connection.transmit(&mut bytes);
        self.observer.sent(self.side, &bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    fn receive(&mut self, connection: &mut dyn Connection) {
        let mut buffer = [0; 4096];
        let length = self.stream.read(&mut buffer).unwrap();
        assert_ne!(length, 0, "the peer is gone");
        let peer = match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        self.observer.sent(peer, &buffer[..length]);
        connection.receive(&buffer[..length]);
    }
}
