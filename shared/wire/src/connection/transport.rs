//! Settings of TCP and HTTP/2 that both ends share.

use std::time::Duration;

/// Bytes that one stream may have on its way: a large matrix flows without waiting for the reader.
pub(crate) const STREAM_WINDOW_BYTES: u32 = 8 << 20;
/// Bytes that one connection may have on its way.
pub(crate) const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Bytes of one HTTP/2 frame: few frames for a matrix, and no long wait for a ping behind one.
pub(crate) const HTTP2_FRAME_BYTES: u32 = 64 << 10;
/// Bytes of headers, which carry an error's text.
pub(crate) const HEADER_LIST_BYTES: u32 = 64 << 10;
/// Bytes that the system holds for sending: a ping must not wait long behind them on a slow line.
pub(crate) const SEND_BUFFER_BYTES: usize = 512 << 10;
/// The pings only keep both sides talking; whether a peer lives is judged at the socket.
pub(crate) const PING_REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// For reaching a port, and again for the handshake.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For the first message of a site.
pub(crate) const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// For all that a caller without a certificate has to ask.
pub(crate) const STRANGER_TIMEOUT: Duration = Duration::from_secs(60);
/// For the first byte of a caller.
pub(crate) const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(1);
/// Handshakes at the same time; for a further caller the one that was silent longest makes room.
pub(crate) const HANDSHAKES_MAX: usize = 256;
/// Of them, of one address.
pub(crate) const HANDSHAKES_PER_ADDRESS_MAX: usize = 64;
/// Open connections of one identity; for a further one the oldest ends. Two make a change of connections, the others
/// are commands of one operator at the same time.
pub(crate) const CONNECTIONS_PER_IDENTITY_MAX: usize = 8;
/// Open streams of one connection; further ones wait at the caller.
pub(crate) const STREAMS_MAX: u32 = 8;
/// Streams of one site that attend: one, and the one that takes its place.
pub(crate) const ATTENDANCES_MAX: usize = 2;
/// Between two attendances of one site: each is sent the run's questions again.
pub(crate) const ATTENDANCE_INTERVAL: Duration = Duration::from_millis(100);
/// Refused callers that the log tells of in a minute.
pub(crate) const REFUSALS_LOGGED_MAX: u32 = 60;
/// Between two looks at the list of revoked certificates.
pub(crate) const REVOKED_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A refused caller has this long to read why.
pub(crate) const REFUSAL_LINGER: Duration = Duration::from_secs(1);
/// For connections to end once the coordinator stops.
pub(crate) const STOP_TIMEOUT: Duration = Duration::from_secs(2);
