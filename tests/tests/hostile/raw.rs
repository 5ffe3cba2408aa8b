//! A client that holds a certificate and keeps no rule but those of TLS and HTTP/2 frames: what it says on its streams
//! is the attack's to choose.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use wire::{CredentialFiles, PROTOCOL_VERSION};

/// The streams of the sites' service.
pub(super) const ATTEND: &str = "/kindred.federation.v1.Federation/Attend";
/// Bytes of one frame of data.
const DATA_BYTES: usize = 16 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACKNOWLEDGED: u8 = 1;
const END_HEADERS: u8 = 4;
const INITIAL_WINDOW: u16 = 4;

/// One connection.
pub(super) struct Raw {
    writer: Arc<tokio::sync::Mutex<WriteHalf<TlsStream<TcpStream>>>>,
    heard: Arc<Heard>,
    next: u32,
    reading: JoinHandle<()>,
}

/// What the server has said.
#[derive(Default)]
struct Heard {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    /// Bytes that may be sent: of the connection at 0, of each stream at its number.
    windows: BTreeMap<u32, i64>,
    initial_window: i64,
    refused: usize,
    is_closed: bool,
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Raw {
    /// Shakes hands with the party's certificate.
    pub(super) async fn connect(address: SocketAddr, files: &CredentialFiles) -> io::Result<Self> {
        let stream = secure(address, files).await?;
        let (reader, mut writer) = tokio::io::split(stream);
        writer
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .await?;
        writer.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
        writer.flush().await?;
        let writer = Arc::new(tokio::sync::Mutex::new(writer));
        let heard = Arc::new(Heard::default());
        {
            let mut state = heard.state.lock().unwrap();
            state.windows.insert(0, 65_535);
            state.initial_window = 65_535;
        }
        let reading = tokio::spawn(read(reader, Arc::clone(&writer), Arc::clone(&heard)));
        Ok(Self {
            writer,
            heard,
            next: 1,
            reading,
        })
    }

    /// Opens a stream of a service by its request's headers; gives its number.
    pub(super) async fn open(&mut self, path: &str) -> io::Result<u32> {
        let stream = self.next;
        self.next += 2;
        {
            let mut state = self.heard.state.lock().unwrap();
            let window = state.initial_window;
            state.windows.insert(stream, window);
        }
        let mut block = Vec::new();
        for (name, value) in [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "coordinator"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("kindred-protocol", &PROTOCOL_VERSION.to_string()),
        ] {
            block.push(0);
            for text in [name, value] {
                block.push(u8::try_from(text.len()).unwrap());
                block.extend_from_slice(text.as_bytes());
            }
        }
        self.write(&frame(HEADERS, END_HEADERS, stream, &block))
            .await?;
        Ok(stream)
    }

    /// Sends one gRPC message on a stream, as fast as the server takes it.
    pub(super) async fn send(&self, stream: u32, message: &[u8]) -> io::Result<()> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
        bytes.extend_from_slice(message);
        for piece in bytes.chunks(DATA_BYTES) {
            self.take_window(stream, piece.len()).await?;
            self.write(&frame(DATA, 0, stream, piece)).await?;
        }
        Ok(())
    }

    /// From now on nothing that the server says is read, not even whether it still hears.
    pub(super) fn stop_reading(&self) {
        self.reading.abort();
    }

    /// Streams that the server has refused or ended.
    pub(super) fn refused(&self) -> usize {
        self.heard.state.lock().unwrap().refused
    }

    pub(super) fn is_closed(&self) -> bool {
        self.heard.state.lock().unwrap().is_closed
    }

    async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        if self.is_closed() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut writer = self.writer.lock().await;
        writer.write_all(bytes).await?;
        writer.flush().await
    }

    async fn take_window(&self, stream: u32, bytes: usize) -> io::Result<()> {
        let bytes = i64::try_from(bytes).unwrap();
        loop {
            let news = self.heard.news.notified();
            {
                let mut state = self.heard.state.lock().unwrap();
                if state.is_closed || !state.windows.contains_key(&stream) {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                if state.windows[&0] >= bytes && state.windows[&stream] >= bytes {
                    for place in [0, stream] {
                        *state.windows.get_mut(&place).unwrap() -= bytes;
                    }
                    return Ok(());
                }
            }
            news.await;
        }
    }
}

async fn secure(address: SocketAddr, files: &CredentialFiles) -> io::Result<TlsStream<TcpStream>> {
    let chain = CertificateDer::pem_file_iter(&files.certificate).unwrap();
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
    let mut roots = RootCertStore::empty();
    for root in CertificateDer::pem_file_iter(&files.authority).unwrap() {
        roots.add(root.unwrap()).unwrap();
    }
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(address.ip().to_string()).unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Answers settings and pings, and follows the windows.
async fn read(
    mut reader: ReadHalf<TlsStream<TcpStream>>,
    writer: Arc<tokio::sync::Mutex<WriteHalf<TlsStream<TcpStream>>>>,
    heard: Arc<Heard>,
) {
    let mut head = [0; 9];
    while reader.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut payload = vec![0; length];
        if reader.read_exact(&mut payload).await.is_err() {
            break;
        }
        let answer = match kind {
            SETTINGS if flags & ACKNOWLEDGED == 0 => Some(frame(SETTINGS, ACKNOWLEDGED, 0, &[])),
            PING if flags & ACKNOWLEDGED == 0 => Some(frame(PING, ACKNOWLEDGED, 0, &payload)),
            _ => None,
        };
        if let Some(answer) = answer {
            let mut writer = writer.lock().await;
            if writer.write_all(&answer).await.is_err() || writer.flush().await.is_err() {
                break;
            }
        }
        heard.take(kind, flags, stream, &payload);
    }
    heard.state.lock().unwrap().is_closed = true;
    heard.news.notify_waiters();
}

impl Heard {
    fn take(&self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let number = |bytes: &[u8]| i64::from(u32::from_be_bytes(bytes.try_into().unwrap()));
        let mut state = self.state.lock().unwrap();
        match kind {
            SETTINGS if flags & ACKNOWLEDGED == 0 => {
                for setting in payload.chunks_exact(6) {
                    if u16::from_be_bytes([setting[0], setting[1]]) == INITIAL_WINDOW {
                        let more = number(&setting[2..]) - state.initial_window;
                        state.initial_window += more;
                        for (place, window) in &mut state.windows {
                            *window += if *place == 0 { 0 } else { more };
                        }
                    }
                }
            }
            WINDOW_UPDATE => {
                if let Some(window) = state.windows.get_mut(&stream) {
                    *window += number(payload);
                }
            }
            RESET => {
                state.refused += 1;
                state.windows.remove(&stream);
            }
            // Trailers, or headers that end the stream at once.
            HEADERS if flags & 1 != 0 => {
                state.refused += 1;
                state.windows.remove(&stream);
            }
            GO_AWAY => state.is_closed = true,
            _ => {}
        }
        drop(state);
        self.news.notify_waiters();
    }
}

/// A hello of version `version`, as a frame to the coordinator.
pub(super) fn hello(version: &str) -> Vec<u8> {
    field(1, &field(1, &field(1, version.as_bytes())))
}

/// The field of an answer, and of a question, that UnPSL has.
const UNPSL: u8 = 16;

/// The head of a reply that declares a contribution, `rows` x 1024.
pub(super) fn contribution(run: &str, exchange: u32, rows: u32) -> Vec<u8> {
    let shape = [number(1, rows), number(2, 1024)].concat();
    let contribution = field(1, &shape);
    let answer = field(UNPSL, &field(1, &contribution));
    let reply = [
        field(1, run.as_bytes()),
        number(2, exchange),
        field(3, &answer),
    ]
    .concat();
    field(1, &field(2, &reply))
}

/// A part with 2^17 zeros of a matrix.
pub(super) fn chunk(matrix: u32, offset: u32) -> Vec<u8> {
    let values = vec![0; CHUNK_BYTES];
    let chunk = [number(1, matrix), number(2, offset), field(3, &values)].concat();
    field(2, &field(1, &chunk))
}

/// Bytes of the values of a chunk.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

fn field(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    varint(&mut encoded, usize::from(tag) << 3 | 2);
    varint(&mut encoded, bytes.len());
    encoded.extend_from_slice(bytes);
    encoded
}

fn number(tag: u8, value: u32) -> Vec<u8> {
    let mut encoded = vec![tag << 3];
    varint(&mut encoded, value as usize);
    encoded
}

fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 128 {
        bytes.push(u8::try_from(value & 127).unwrap() | 128);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
}
