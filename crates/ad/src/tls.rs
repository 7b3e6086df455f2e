//! What all TLS of the programs has in common.

use openssl::error::ErrorStack;
use openssl::ssl::{SslContext, SslContextBuilder, SslMethod, SslVersion};

/// A context for TLS 1.3 and nothing else, which knows all signatures that there are.
pub(crate) fn context(method: SslMethod) -> Result<SslContextBuilder, ErrorStack> {
    let signatures: Vec<_> = lastbyte_providers::signatures().collect();
    let context = lastbyte_providers::offering(&signatures, || SslContext::builder(method));
    let mut context = context??;
    context.set_min_proto_version(Some(SslVersion::TLS1_3))?;
    Ok(context)
}
