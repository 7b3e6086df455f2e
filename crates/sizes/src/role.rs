//! Whose chain it is.

/// Whom a chain is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChainRole {
    /// A TLS server.
    #[default]
    Server,
    /// A client in mutual TLS.
    Client,
}
