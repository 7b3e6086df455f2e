//! How connections end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use openssl::ssl::ErrorCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_openssl::SslStream;

/// Whether a TLS connection has ended without a close_notify (RFC 8446, section 6.1), as many peers
/// have it. OpenSSL has words for it, and no kind of error.
pub(crate) fn is_end(error: &io::Error) -> bool {
    let says = || error.to_string().to_ascii_lowercase();
    error.kind() == io::ErrorKind::UnexpectedEof || says().contains("unexpected eof")
}

/// A TLS connection whose end is an error ([`is_end`]) unless the peer has sent a close_notify.
/// OpenSSL's own error is none here: how it is bound, it can't see that TCP has ended, and what
/// reads takes it for the end of the session.
pub(crate) struct CloseNotifyRequired<S>(pub(crate) SslStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for CloseNotifyRequired<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.remaining();
        ready!(Pin::new(&mut self.0).poll_read(context, buffer))?;
        if buffer.remaining() < before || before == 0 {
            return Poll::Ready(Ok(()));
        }
        // It reads nothing more, and says why.
        match ready!(Pin::new(&mut self.0).poll_peek(context, &mut [0])) {
            Err(error) if error.code() == ErrorCode::ZERO_RETURN => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for CloseNotifyRequired<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
