//! The registry of stacks: one line each, and a module that implements it.

use std::fmt;
use std::str::FromStr;

use crate::ask::Ask;
use crate::stack::{ClientSide, ServerSide};
use crate::{TlsConfig, TlsError};

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
    ($($(#[$doc:meta])* $stack:ident = $name:literal in $module:ident $(if $feature:literal)?;)+) => {
        /// An implementation of TLS.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum StackName {
            $($(#[$doc])* $stack,)+
        }

        impl StackName {
            /// All that there are, built in or not.
            pub const ALL: [StackName; [$($name),+].len()] = [$(StackName::$stack),+];

            /// The name on the command line, in files, and of the feature that builds it in.
            pub fn name(self) -> &'static str {
                match self {
                    $(StackName::$stack => $name,)+
                }
            }

            fn built_in(self) -> Option<&'static dyn Implementation> {
                match self {
                    $(
                        $(#[cfg(feature = $feature)])?
                        StackName::$stack => Some(&crate::$module::Implementation),
                    )+
                    #[allow(unreachable_patterns, reason = "all may be built in")]
                    _ => None,
                }
            }
        }
    };
}

stacks! {
    /// OpenSSL, with its own TLS and cryptography.
    #[default]
    OpenSsl = "openssl" in openssl;
    /// s2n-tls on AWS-LC.
    S2nTls = "s2n-tls" in s2n if "s2n-tls";
    /// rustls on AWS-LC.
    Rustls = "rustls" in rustls if "rustls";
}

impl StackName {
    /// The versions of the libraries it consists of, if it is built in.
    pub fn version(self) -> Option<String> {
        self.built_in().map(Implementation::version)
    }

    /// # Errors
    /// [`TlsError::Unsupported`] when it is not built in.
    pub(crate) fn implementation(self) -> Result<&'static dyn Implementation, TlsError> {
        self.built_in().ok_or_else(|| {
            self.cannot(
                "be used: it is not built in",
                format!("build lastbyte with --features {self}"),
            )
        })
    }

    /// That this stack can't do something, and what to do instead.
    pub(crate) fn cannot(self, what: impl Into<String>, mend: impl Into<String>) -> TlsError {
        TlsError::Unsupported {
            stack: self.name(),
            what: what.into(),
            mend: mend.into(),
        }
    }
}

#[cfg(any(feature = "rustls", feature = "s2n-tls"))]
pub(crate) fn on_aws_lc(name: &str, version: &str) -> String {
    format!("{name} {version}, aws-lc-rs {}", env!("AWS_LC_RS_VERSION"))
}

impl fmt::Display for StackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for StackName {
    type Err = UnknownStack;

    fn from_str(text: &str) -> Result<StackName, UnknownStack> {
        let mut all = StackName::ALL.into_iter();
        all.find(|stack| stack.name() == text)
            .ok_or_else(|| UnknownStack {
                text: text.to_owned(),
            })
    }
}

/// The text names no [`StackName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown stack {text:?}: use one of {}", StackName::ALL.map(StackName::name).join(", "))]
pub struct UnknownStack {
    text: String,
}
