//! The registry of stacks: one line each, and a module that implements it.

use crate::ask::Ask;
use crate::error::cannot;
use crate::stack::{ClientSide, ServerSide};
use crate::{StackName, TlsConfig, TlsError};

/// An implementation of TLS, as its module tells it.
pub(crate) trait Implementation: Sync {
    /// The versions of the libraries that it consists of.
    fn version(&self) -> String;

    /// Whether one side can do that. [`capabilities`](crate::capabilities) come of it.
    fn check(&self, ask: &Ask) -> Result<(), TlsError>;

    /// The client's side, which obeys [`check`](Implementation::check).
    fn client(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ClientSide>, TlsError>;

    /// The server's side, likewise.
    fn server(&self, config: &TlsConfig<'_>) -> Result<Box<dyn ServerSide>, TlsError>;
}

macro_rules! stacks {
    ($($stack:ident in $module:ident $(if $feature:literal)?;)+) => {
        fn built_in(stack: StackName) -> Option<&'static dyn Implementation> {
            match stack {
                $(
                    $(#[cfg(feature = $feature)])?
                    StackName::$stack => Some(&crate::$module::Implementation),
                )+
                #[allow(unreachable_patterns, reason = "all may be built in")]
                _ => None,
            }
        }
    };
}

stacks! {
    OpenSsl in openssl;
    S2nTls in s2n if "s2n-tls";
    Rustls in rustls if "rustls";
}

/// The versions of the libraries that a stack consists of, if it is built in.
pub fn version(stack: StackName) -> Option<String> {
    built_in(stack).map(Implementation::version)
}

/// # Errors
/// [`TlsError::Unsupported`] when it is not built in.
pub(crate) fn implementation(stack: StackName) -> Result<&'static dyn Implementation, TlsError> {
    built_in(stack).ok_or_else(|| {
        let hint = format!("build lastbyte with --features {stack}");
        cannot(stack, "be used: it is not built in", hint)
    })
}
