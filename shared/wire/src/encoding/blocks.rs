//! Bytes that are too many for one frame, in blocks.

use crate::encoding::list::{Listed, Outgoing};
use crate::encoding::parts::{Declared, IncomingParts, OutgoingParts};
use crate::encoding::values::{at_most, length};
use crate::error::WireError;
use crate::generated as pb;
use crate::generated::part::Part;

/// Bytes of one block.
pub(crate) const BLOCK_BYTES: usize = 64 << 10;
/// Blocks of one message at most: 1 GiB.
const BLOCKS_MAX: usize = 1 << 14;

/// Blocks of bytes.
pub(crate) enum Blocks {}

impl Listed for Blocks {
    type Item = Vec<u8>;
    type Row = pb::Block;
    const DECLARED: &'static str = "blocks";
    const PART: &'static str = "a list of blocks";
    const ITEMS_MAX: usize = BLOCKS_MAX;

    fn part(blocks: Vec<pb::Block>) -> Part {
        Part::Blocks(pb::BlocksChunk { blocks })
    }

    fn write(block: &Vec<u8>) -> pb::Block {
        let bytes = block.clone();
        pb::Block { bytes }
    }

    fn read(block: pb::Block, _numbers: &mut usize) -> Result<Vec<u8>, WireError> {
        at_most("bytes of a block", block.bytes.len(), BLOCK_BYTES)?;
        Ok(block.bytes)
    }
}

/// The blocks of so many bytes, and how many they are. The bytes are made piece by piece, as blocks are asked for: whoever sends them to
/// many holds no copy for each.
pub(crate) fn cut_pieces(
    total: usize,
    mut pieces: impl Iterator<Item = Vec<u8>> + Send + 'static,
) -> (u32, OutgoingParts) {
    let count = total.div_ceil(BLOCK_BYTES);
    let mut rest = Vec::new();
    let blocks = (0..count).map(move |_| {
        while rest.len() < BLOCK_BYTES
            && let Some(piece) = pieces.next()
        {
            match rest.is_empty() {
                true => rest = piece,
                false => rest.extend(piece),
            }
        }
        let after = rest.split_off(rest.len().min(BLOCK_BYTES));
        let bytes = std::mem::replace(&mut rest, after);
        pb::Block { bytes }
    });
    let parts = OutgoingParts {
        blocks: Outgoing::rows(blocks),
        ..OutgoingParts::none()
    };
    (length(count), parts)
}

/// So many blocks follow.
pub(crate) fn declared(blocks: u32) -> Declared {
    Declared {
        blocks,
        ..Declared::default()
    }
}

/// The bytes of the blocks that came, which are to be so many.
pub(crate) fn join(parts: &mut IncomingParts, wanted: u64) -> Result<Vec<u8>, WireError> {
    let bytes = parts.blocks.take().concat();
    if bytes.len() as u64 == wanted {
        return Ok(bytes);
    }
    Err(WireError::Unexpected {
        found: format!("{} bytes in blocks", bytes.len()),
        wanted: format!("{wanted}, as declared"),
    })
}
