//! The small things of an epoch as bytes: the record (header and entries) and the table of kept epochs. Untrusted when
//! read. It must not know where the bytes lie.

use super::fault::Fault;
use super::format::{MapRef, TableEntry};
use super::{Checkpoint, Entry};
use zerocopy::{FromBytes, IntoBytes};

/// An entry as the file has it.
#[derive(Clone, Debug)]
pub(super) struct EntryRecord {
    pub operator: String,
    pub state: String,
    pub task: u32,
    pub tasks: u32,
    pub schema: Vec<u8>,
    pub root: Vec<u8>,
    pub map: Option<MapRef>,
}

/// What an epoch holds beside pages.
#[derive(Clone, Debug)]
pub(super) struct EpochRecord {
    pub epoch: u64,
    pub header: Vec<u8>,
    pub entries: Vec<EntryRecord>,
}

/// For messages: which part of which epoch.
pub(super) fn place(operator: &str, state: &str, task: u32, tasks: u32) -> String {
    format!("operator `{operator}`, state `{state}`, task {task} of {tasks}")
}

/// The length of what [`encode`] makes.
pub(super) fn encoded_len(checkpoint: &Checkpoint) -> usize {
    let entry = |entry: &Entry| {
        let strings = [entry.operator.len(), entry.state.len(), entry.schema.len(), entry.root.len()];
        let map = if entry.pages.is_some() { size_of::<MapRef>() } else { 0 };
        strings.iter().map(|len| 4 + len).sum::<usize>() + 4 + 4 + 1 + map
    };
    8 + 4 + checkpoint.header.len() + 4 + checkpoint.entries.iter().map(entry).sum::<usize>()
}

/// `maps`: one for each entry.
pub(super) fn encode(checkpoint: &Checkpoint, maps: &[Option<MapRef>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(encoded_len(checkpoint));
    put_head(&mut out, checkpoint.epoch, &checkpoint.header, checkpoint.entries.len());
    for (entry, map) in checkpoint.entries.iter().zip(maps) {
        let Entry { operator, state, task, tasks, schema, root, .. } = entry;
        put_entry(&mut out, [operator, state], [*task, *tasks], [schema, root], map.as_ref());
    }
    out
}

/// What [`decode`] has made, once more.
pub(super) fn encode_record(record: &EpochRecord) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, record.epoch, &record.header, record.entries.len());
    for EntryRecord { operator, state, task, tasks, schema, root, map } in &record.entries {
        put_entry(&mut out, [operator, state], [*task, *tasks], [schema, root], map.as_ref());
    }
    out
}

fn put_head(out: &mut Vec<u8>, epoch: u64, header: &[u8], entries: usize) {
    out.extend(epoch.to_le_bytes());
    put_bytes(out, header);
    out.extend((entries as u32).to_le_bytes());
}

fn put_entry(out: &mut Vec<u8>, names: [&str; 2], tasks: [u32; 2], bytes: [&[u8]; 2], map: Option<&MapRef>) {
    names.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    tasks.iter().for_each(|number| out.extend(number.to_le_bytes()));
    bytes.iter().for_each(|bytes| put_bytes(out, bytes));
    out.push(u8::from(map.is_some()));
    out.extend(map.iter().flat_map(|map| map.as_bytes()));
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend((bytes.len() as u32).to_le_bytes());
    out.extend(bytes);
}

/// The unread rest of a record.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (head, rest) =
            self.0.split_at_checked(len).ok_or_else(|| Fault::Corrupt("the record ends early".into()))?;
        self.0 = rest;
        Ok(head)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        Ok(self.take(N)?.try_into().expect("N bytes were taken"))
    }
    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }
    fn bytes(&mut self) -> Result<Vec<u8>, Fault> {
        let len = self.u32()?;
        Ok(self.take(len as usize)?.to_vec())
    }
    fn text(&mut self) -> Result<String, Fault> {
        String::from_utf8(self.bytes()?).map_err(|_| Fault::Corrupt("a name is not UTF-8".into()))
    }
    fn map(&mut self) -> Result<Option<MapRef>, Fault> {
        match self.array()? {
            [0] => Ok(None),
            [1] => Ok(Some(MapRef::read_from_bytes(self.take(size_of::<MapRef>())?).expect("the length is right"))),
            [other] => Err(Fault::Corrupt(format!("an entry of kind {other}"))),
        }
    }
}

pub(super) fn decode(bytes: &[u8]) -> Result<EpochRecord, Fault> {
    let mut rest = Rest(bytes);
    let epoch = u64::from_le_bytes(rest.array()?);
    let header = rest.bytes()?;
    let mut entries = Vec::new();
    for _ in 0..rest.u32()? {
        entries.push(EntryRecord {
            operator: rest.text()?,
            state: rest.text()?,
            task: rest.u32()?,
            tasks: rest.u32()?,
            schema: rest.bytes()?,
            root: rest.bytes()?,
            map: rest.map()?,
        });
    }
    if !rest.0.is_empty() {
        return Err(Fault::Corrupt(format!("{} bytes behind the record", rest.0.len())));
    }
    Ok(EpochRecord { epoch, header, entries })
}

/// The kept epochs, ascending.
pub(super) fn decode_table(bytes: &[u8]) -> Result<Vec<TableEntry>, Fault> {
    let wrong = || Fault::Corrupt("epoch table: not a list of ascending epochs".into());
    let table = <[TableEntry]>::ref_from_bytes(bytes).map_err(|_| wrong())?;
    if !table.is_sorted_by(|a, b| a.epoch.get() < b.epoch.get()) {
        return Err(wrong());
    }
    Ok(table.to_vec())
}
