use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::thread;

use lastbyte_pki::test_chains;
use openssl::ssl::{
    Ssl, SslContext, SslContextBuilder, SslSession, SslSessionCacheMode, SslStream,
};

use super::{TicketKeys, install};
use crate::fixtures;
use crate::openssl::EndEntity;
use crate::openssl::server::{UnknownNames, pass, stop_at_client_hello};
use crate::server::Chain;

const NAME: &str = "a.example";

struct Ends {
    server: SslContext,
    client: SslContext,
    sessions: Arc<Mutex<Vec<SslSession>>>,
}

impl Ends {
    fn new(change: impl FnOnce(&mut SslContextBuilder)) -> Ends {
        let own = test_chains::for_name(NAME).unwrap();
        let chain = Chain::new(own.certificates().to_vec(), own.key().clone()).unwrap();
        let chains = fixtures::shared(vec![chain]);
        let mut server = fixtures::server(&chains, EndEntity::RawPublicKey);
        change(&mut server);
        let mut client = fixtures::plain_client(own.root());
        let sessions = Arc::<Mutex<Vec<SslSession>>>::default();
        let kept = Arc::clone(&sessions);
        client.set_session_cache_mode(SslSessionCacheMode::CLIENT);
        client.set_new_session_callback(move |_, session| kept.lock().unwrap().push(session));
        Ends {
            server: server.build(),
            client: client.build(),
            sessions,
        }
    }

    /// Connects, and tells whether the session was resumed.
    fn connect(
        &self,
        name: &str,
        session: Option<&SslSession>,
        unknown: UnknownNames,
    ) -> Result<bool, String> {
        let (here, there) = UnixStream::pair().unwrap();
        let mut accepting = Ssl::new(&self.server).unwrap();
        stop_at_client_hello(&mut accepting, unknown).unwrap();
        let server = thread::spawn(move || {
            let mut stream = SslStream::new(accepting, there).unwrap();
            loop {
                match stream.accept() {
                    Ok(()) => break,
                    Err(error) if error.code() == openssl::ssl::ErrorCode::WANT_CLIENT_HELLO_CB => {
                        pass(stream.ssl());
                    }
                    Err(_) => return,
                }
            }
            // The tickets go with it.
            let _ = stream.write_all(b"x");
        });
        let mut ssl = Ssl::new(&self.client).unwrap();
        ssl.set_hostname(name).unwrap();
        // Whether its certificate is for that name is not what this is about.
        ssl.set_verify(openssl::ssl::SslVerifyMode::NONE);
        if let Some(session) = session {
            set_session(&mut ssl, session);
        }
        let mut stream = SslStream::new(ssl, here).unwrap();
        let connected = stream.connect().map_err(|error| error.to_string());
        let resumed = connected.map(|()| {
            stream.read_exact(&mut [0]).unwrap();
            stream.ssl().session_reused()
        });
        // OpenSSL forgets the session of a connection that ends without.
        let _ = stream.shutdown();
        drop(stream);
        server.join().unwrap();
        resumed
    }

    fn last_session(&self) -> SslSession {
        self.sessions.lock().unwrap().last().unwrap().clone()
    }
}

#[allow(unsafe_code)]
fn set_session(ssl: &mut Ssl, session: &SslSession) {
    // SAFETY: the session is of a connection of the same context.
    unsafe { ssl.set_session(session).unwrap() }
}

const SERVED: UnknownNames = UnknownNames::Served;

#[test]
fn tickets_are_good_until_the_key_has_changed_twice() {
    let keys = Arc::new(TicketKeys::new().unwrap());
    let ends = Ends::new(|server| install(server, Arc::clone(&keys)).unwrap());
    // Clients use each once.
    let [first, second, third] = [(); 3].map(|()| {
        assert!(!ends.connect(NAME, None, SERVED).unwrap());
        ends.last_session()
    });
    assert!(ends.connect(NAME, Some(&first), SERVED).unwrap());
    keys.change().unwrap();
    assert!(ends.connect(NAME, Some(&second), SERVED).unwrap());
    let new = ends.last_session();
    keys.change().unwrap();
    assert!(!ends.connect(NAME, Some(&third), SERVED).unwrap());
    assert!(ends.connect(NAME, Some(&new), SERVED).unwrap());
}

#[test]
fn a_ticket_of_one_name_does_not_resume_another() {
    let ends = Ends::new(|_| {});
    let [first, second] = [(); 2].map(|()| {
        assert!(!ends.connect(NAME, None, SERVED).unwrap());
        ends.last_session()
    });
    assert!(ends.connect(NAME, Some(&first), SERVED).unwrap());
    assert!(!ends.connect("b.example", Some(&second), SERVED).unwrap());
}

#[test]
fn unknown_names_are_refused_on_request() {
    let ends = Ends::new(|_| {});
    let refused = UnknownNames::Refused;
    assert!(ends.connect(NAME, None, refused).is_ok());
    let error = ends.connect("b.example", None, refused).unwrap_err();
    assert!(error.contains("unrecognized name"), "{error}");
}
