//! s2n-tls on AWS-LC.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::task::Poll;
use std::time::{Duration, SystemTime};
use std::{mem, slice};

use s2n_tls::callbacks::{SessionTicket, SessionTicketCallback, VerifyHostNameCallback};
use s2n_tls::config::{Builder, Config};
use s2n_tls::connection::Connection;
use s2n_tls::enums::{Blinding, ClientAuthType, Mode as Role};
use s2n_tls::security::Policy;

use crate::{Case, Ends, Failed, Mode, SERVER_NAME, expect, timed};

pub struct S2n {
    client: Config,
    server: Config,
    group: String,
    mode: Mode,
    first: bool,
}

/// What a connection reads, what it has written, and the newest session.
#[derive(Default)]
struct Memory {
    incoming: VecDeque<u8>,
    outgoing: VecDeque<u8>,
    session: Option<Vec<u8>>,
}

thread_local! {
    static CURRENT: RefCell<Memory> = RefCell::default();
}

struct KeepTicket;

impl SessionTicketCallback for KeepTicket {
    fn on_session_ticket(&self, _: &mut Connection, ticket: &SessionTicket) {
        let mut bytes = vec![0; ticket.len().unwrap_or(0)];
        if ticket.data(&mut bytes).is_ok() {
            CURRENT.with_borrow_mut(|memory| memory.session = Some(bytes));
        }
    }
}

/// A client is of no host that could be named.
struct AnyName;

impl VerifyHostNameCallback for AnyName {
    fn verify_host_name(&self, _: &str) -> bool {
        true
    }
}

/// A policy settles the groups. The one with ML-DSA sends a share for secp256r1 as well.
fn policy(case: &Case) -> Result<&'static str, Failed> {
    match (case.group.as_str(), case.chain.starts_with("ml-dsa")) {
        ("X25519", false) => Ok("CloudFront-TLS-1-3-2025-no-pq"),
        ("X25519MLKEM768", false) => Ok("CloudFront-TLS-1-3-2025"),
        ("X25519MLKEM768", true) => Ok("20250721"),
        (group, _) => Err(format!("no policy for {group} and {}", case.chain).into()),
    }
}

impl S2n {
    pub fn new(case: &Case) -> Result<Self, Failed> {
        let policy = Policy::from_version(policy(case)?)?;
        let builder = || -> Result<Builder, Failed> {
            let mut builder = Builder::new();
            builder
                .set_security_policy(&policy)?
                .with_system_certs(false)?;
            Ok(builder)
        };
        let (mut client, mut server) = (builder()?, builder()?);
        client.trust_pem(&case.file("", "root.pem")?)?;
        server.load_pem(&case.file("", "chain.pem")?, &case.file("", "key.pem")?)?;
        match case.mode {
            Mode::Full => {}
            Mode::Mutual => {
                client.load_pem(
                    &case.file("-client", "chain.pem")?,
                    &case.file("-client", "key.pem")?,
                )?;
                client.set_client_auth_type(ClientAuthType::Required)?;
                server.trust_pem(&case.file("-client", "root.pem")?)?;
                server
                    .set_client_auth_type(ClientAuthType::Required)?
                    .set_verify_host_callback(AnyName)?;
            }
            Mode::Resumed => {
                client
                    .enable_session_tickets(true)?
                    .set_session_ticket_callback(KeepTicket)?;
                server.enable_session_tickets(true)?;
                let key: [u8; 32] = std::array::from_fn(|index| index as u8);
                server.add_session_ticket_key(
                    b"lastbyte",
                    &key,
                    SystemTime::now() - Duration::from_secs(1),
                )?;
            }
        }
        CURRENT.take();
        Ok(Self {
            client: client.build()?,
            server: server.build()?,
            group: case.group.clone(),
            mode: case.mode,
            first: true,
        })
    }
}

unsafe extern "C" fn receive(_: *mut c_void, to: *mut u8, length: u32) -> c_int {
    let read = CURRENT.with_borrow_mut(|memory| {
        if memory.incoming.is_empty() {
            return None;
        }
        // SAFETY: s2n-tls gives a buffer of that length.
        memory
            .incoming
            .read(unsafe { slice::from_raw_parts_mut(to, length as usize) })
            .ok()
    });
    read.map_or_else(
        || {
            // SAFETY: the C library's own variable of this thread.
            unsafe { *libc::__errno_location() = libc::EWOULDBLOCK };
            -1
        },
        |length| length as c_int,
    )
}

unsafe extern "C" fn send(_: *mut c_void, from: *const u8, length: u32) -> c_int {
    // SAFETY: s2n-tls gives so many bytes to send.
    let bytes = unsafe { slice::from_raw_parts(from, length as usize) };
    CURRENT.with_borrow_mut(|memory| memory.outgoing.extend(bytes));
    length as c_int
}

fn connection(role: Role, config: &Config) -> Result<Connection, s2n_tls::error::Error> {
    let mut connection = Connection::new(role);
    connection
        .set_config(config.clone())?
        .set_blinding(Blinding::SelfService)?;
    connection
        .set_receive_callback(Some(receive))?
        .set_send_callback(Some(send))?;
    Ok(connection)
}

/// Whether the end is done with the handshake.
fn advance(connection: &mut Connection) -> Result<bool, Failed> {
    match connection.poll_negotiate() {
        Poll::Ready(Ok(_)) => Ok(true),
        Poll::Pending => Ok(false),
        Poll::Ready(Err(error)) => Err(error.into()),
    }
}

/// The bytes that one end has written are those that the other one reads.
fn swap() {
    CURRENT.with_borrow_mut(|memory| mem::swap(&mut memory.incoming, &mut memory.outgoing));
}

impl Ends for S2n {
    fn handshake(&mut self) -> Result<[Duration; 2], Failed> {
        let [mut at_client, mut at_server] = [Duration::ZERO; 2];
        let session = CURRENT.with_borrow_mut(|memory| memory.session.take());
        let mut client = timed(&mut at_client, || -> Result<_, Failed> {
            let mut client = connection(Role::Client, &self.client)?;
            client.set_server_name(SERVER_NAME)?;
            if let Some(session) = &session {
                client.set_session_ticket(session)?;
            }
            Ok(client)
        })?;
        let mut server = timed(&mut at_server, || connection(Role::Server, &self.server))?;
        let mut done = [false; 2];
        for _ in 0..4 {
            done[0] = timed(&mut at_client, || advance(&mut client))?;
            swap();
            done[1] = timed(&mut at_server, || advance(&mut server))?;
            swap();
            if done == [true; 2] {
                break;
            }
        }
        if done != [true; 2] {
            return Err("a handshake has no end".into());
        }
        if self.mode == Mode::Resumed {
            // The ticket that comes behind it.
            let _ = timed(&mut at_client, || client.poll_recv(&mut [0]));
        }
        let group = client.selected_key_exchange_group().unwrap_or_default();
        expect(
            client.cipher_suite()?,
            group,
            client.resumed(),
            (&self.group, self.mode),
            self.first,
        )?;
        self.first = false;
        timed(&mut at_client, || drop(client));
        timed(&mut at_server, || drop(server));
        CURRENT.with_borrow_mut(|memory| {
            memory.incoming.clear();
            memory.outgoing.clear();
        });
        Ok([at_client, at_server])
    }
}
