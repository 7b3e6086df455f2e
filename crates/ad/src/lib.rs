//! PQTLS-AD on real sockets: publishing to DNS, a TLS-terminating proxy, a client, a monitor.

pub mod check;
pub mod client;
pub mod dns;
pub mod download;
mod end;
pub mod fetch;
pub mod http;
mod probe;
pub mod publish;
pub mod secret;
pub mod serve;
#[cfg(feature = "test-servers")]
pub mod test_servers;
mod tls;
