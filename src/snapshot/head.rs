//! The head of a store file: which store, how big, and where the newest epoch table is. It must not know files or
//! folders, only bytes at offsets.

use super::fault::{Fault, io};
use super::format::{BlobRef, Geometry, HEAD_BYTES, META_COPIES, META_OFFSETS, Meta, SECTOR_BYTES, Superblock};
use super::sink::{ReadAt, Sink};
use std::io as stdio;
use zerocopy::IntoBytes;

/// A head that has been checked against itself and the length of the file.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub id: [u8; 16],
    /// Epochs of earlier generations count up to this one.
    pub follows: u64,
    pub meta: Meta,
    pub geometry: Geometry,
}

/// Reads the head. Touches nothing beyond it, so it is safe on any file.
pub(super) fn read_head(source: &dyn ReadAt) -> Result<Head, Fault> {
    let len = source.len_bytes().map_err(io("read the length of"))?;
    if len == 0 {
        let what = "the file is empty, and stores never are; if nothing is lost with it, remove it to start anew";
        return Err(Fault::Corrupt(what.into()));
    }
    let superblock = Superblock::parse(&read_sector(source, 0, len)?)?;
    if len < HEAD_BYTES {
        return Err(Fault::Corrupt(format!("the file has {len} bytes, less than its head: it was truncated")));
    }
    let id = superblock.id;
    let mut newest: Option<Meta> = None;
    for copy in 0..META_OFFSETS.len() * META_COPIES {
        let offset = META_OFFSETS[copy / META_COPIES] + (copy % META_COPIES * SECTOR_BYTES) as u64;
        let meta = Meta::parse(&read_sector(source, offset, len)?, id);
        newest = meta.into_iter().chain(newest).max_by_key(|meta| meta.sequence.get());
    }
    let meta = newest.ok_or_else(|| Fault::Corrupt("both metas are damaged".into()))?;
    let (page_bytes, segment_bytes) = (superblock.page_bytes.get(), superblock.segment_bytes.get());
    let version = superblock.version.get();
    let geometry = Geometry { version, page_bytes, segment_bytes, segments: meta.segments.get() };
    if geometry.segments == 0 || geometry.segments > geometry.segments_max() {
        return Err(Fault::Corrupt(format!("meta: {} segments", geometry.segments)));
    }
    if len < geometry.file_bytes() {
        let what = format!("the file has {len} bytes and not {}: it was truncated", geometry.file_bytes());
        return Err(Fault::Corrupt(what));
    }
    Ok(Head { id, follows: superblock.follows.get(), meta, geometry })
}

/// One sector, zeros where the file ends early.
fn read_sector(source: &dyn ReadAt, offset: u64, len: u64) -> Result<[u8; SECTOR_BYTES], Fault> {
    let mut sector = [0; SECTOR_BYTES];
    let there = len.saturating_sub(offset).min(SECTOR_BYTES as u64) as usize;
    source.read(offset, &mut sector[..there]).map_err(io("read"))?;
    Ok(sector)
}

/// Makes an empty file a generation without epochs, durably.
pub(super) fn format(sink: &mut dyn Sink, superblock: &Superblock) -> Result<(), Fault> {
    let (page_bytes, segment_bytes) = (superblock.page_bytes.get(), superblock.segment_bytes.get());
    let version = superblock.version.get();
    let geometry = Geometry { version, page_bytes, segment_bytes, segments: 1 };
    sink.grow(0, geometry.file_bytes()).map_err(io("allocate"))?;
    sink.write(0, &[superblock.as_bytes()]).map_err(io("write"))?;
    write_meta(sink, &Meta::new(superblock.id, 1, 0, 1, 0, BlobRef::default())).map_err(io("write"))?;
    sink.sync().map_err(io("sync"))
}

/// Writes both copies of a meta over the older one.
pub(super) fn write_meta(sink: &mut dyn Sink, meta: &Meta) -> stdio::Result<()> {
    sink.write(Meta::offset(meta.sequence.get()), &[meta.as_bytes(); META_COPIES])
}
