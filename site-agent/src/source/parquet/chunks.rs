//! A file of which several columns are read at once: no reader moves another's place.

use bytes::Bytes;
use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A file from one place on.
pub(super) struct FileAt {
    file: Arc<File>,
    start: u64,
    length: u64,
}

impl FileAt {
    /// # Errors
    /// [`io::Error`] where the file's length cannot be read.
    pub(super) fn new(file: File, start: u64) -> io::Result<Self> {
        Ok(Self {
            length: file.metadata()?.len().saturating_sub(start),
            file: Arc::new(file),
            start,
        })
    }
}

impl Length for FileAt {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for FileAt {
    type T = BufReader<Forward>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(Forward {
            file: Arc::clone(&self.file),
            place: self.start.saturating_add(start),
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let place = self.start.saturating_add(start);
        // A damaged file may ask for more than there is.
        if start.saturating_add(length as u64) > self.length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, place)?;
        Ok(bytes.into())
    }
}

/// A file from one place on, read forward.
pub(super) struct Forward {
    file: Arc<File>,
    place: u64,
}

impl Read for Forward {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.place)?;
        self.place += read as u64;
        Ok(read)
    }
}
