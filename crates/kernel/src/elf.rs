//! Reading of RV64 executables, and of the dynamic linkers that some name.
//!
//! The crate `object` is used at its lowest level: header and program headers are views into the bytes with every
//! bound checked, and the loader looks at nothing else of the file, so a stripped or odd section table does no harm.
//! (`goblin` parses the whole file at once and refuses a program for a section that no loader needs.)

use crate::space::{PMEM_WINDOW_BASE, Rights, USER_BEGIN};
use durasim_types::ConfigError;
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// The load address of a position-independent program.
pub(crate) const PIE_BASE: u64 = 0x1_0000_0000;
/// The load address of the dynamic linker: at the end of the addresses of program and heap.
const INTERPRETER_BASE: u64 = PMEM_WINDOW_BASE - (1 << 32);
/// The longest path, as in Linux.
const PATH_MAX: usize = 4096;

/// A part of the file to be put into memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'data> {
    pub(crate) vaddr: u64,
    /// Bytes in memory; those after `bytes` are zero.
    pub(crate) size_bytes: u64,
    pub(crate) bytes: &'data [u8],
    pub(crate) rights: Rights,
}

/// The parts of an ELF file that the loader needs, addresses final.
#[derive(Clone, Debug)]
pub(crate) struct Image<'data> {
    /// Address of its first segment: 0 for a program with fixed addresses.
    pub(crate) base: u64,
    pub(crate) entry: u64,
    /// By ascending address, without overlap.
    pub(crate) segments: Vec<Segment<'data>>,
    /// Address of the program headers in memory, 0 if no segment holds them.
    pub(crate) headers_vaddr: u64,
    pub(crate) header_count: u64,
    /// Path of the dynamic linker of a dynamically linked program (PT_INTERP), which starts in its place.
    pub(crate) interpreter: Option<String>,
}

/// Bytes of one program header of a 64-bit ELF.
pub(crate) const HEADER_BYTES: u64 = 56;

fn refuse<T>(problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new("elf", problem))
}

/// Reads the executable `data`; `name` is used in the sentences of refusals.
pub(crate) fn parse<'data>(name: &str, data: &'data [u8]) -> Result<Image<'data>, ConfigError> {
    parse_at(name, data, PIE_BASE)
}

/// Reads the dynamic linker `data` of a program, which is itself not dynamically linked.
pub(crate) fn parse_interpreter<'data>(
    name: &str,
    data: &'data [u8],
    program: &Image<'_>,
) -> Result<Image<'data>, ConfigError> {
    let end = program.segments.iter().map(|s| s.vaddr + s.size_bytes).max().unwrap_or(0);
    if end > INTERPRETER_BASE {
        return refuse(format!(
            "the program reaches to {end:#x}, where its dynamic linker is loaded: it may reach to {INTERPRETER_BASE:#x}"
        ));
    }
    let image = parse_at(name, data, INTERPRETER_BASE)?;
    match image {
        Image { base: 0, .. } => refuse(format!("{name} is no dynamic linker: its addresses are fixed")),
        Image { interpreter: Some(_), .. } => refuse(format!("{name} is no dynamic linker: it names one")),
        image => Ok(image),
    }
}

/// Reads an executable, which is loaded at `base` if it is position-independent.
fn parse_at<'data>(name: &str, data: &'data [u8], base: u64) -> Result<Image<'data>, ConfigError> {
    check_identity(name, data)?;
    let endian = LittleEndian;
    let Ok(header) = elf::FileHeader64::<LittleEndian>::parse(data) else {
        return refuse(format!("{name} is truncated: its ELF header is incomplete"));
    };
    check_machine(name, header.e_machine(endian), header.e_type(endian), header.e_flags(endian))?;
    let Ok(headers) = header.program_headers(endian, data) else {
        return refuse(format!("{name} is truncated: its program headers lie outside of the file"));
    };
    let interpreter = interpreter_of(name, data, headers)?;
    let base = if header.e_type(endian) == elf::ET_DYN { base } else { 0 };

    let mut segments = Vec::new();
    let mut headers_vaddr = 0;
    for h in headers.iter().filter(|h| h.p_type(endian) == elf::PT_LOAD) {
        let segment = segment_of(name, data, base, h)?;
        let file_bytes = segment.bytes.len() as u64;
        let table = header.e_phoff(endian);
        if (h.p_offset(endian)..h.p_offset(endian) + file_bytes).contains(&table) {
            headers_vaddr = segment.vaddr + (table - h.p_offset(endian));
        }
        if segment.size_bytes > 0 {
            segments.push(segment);
        }
    }
    segments.sort_by_key(|s| s.vaddr);
    if segments.is_empty() {
        return refuse(format!("{name} has no segment to load"));
    }
    if let Some(pair) = segments.windows(2).find(|p| p[0].vaddr + p[0].size_bytes > p[1].vaddr) {
        return refuse(format!("{name} has segments that overlap at {:#x}", pair[1].vaddr));
    }
    let entry = base.wrapping_add(header.e_entry(endian));
    let inside = |s: &Segment| s.rights.execute && (s.vaddr..s.vaddr + s.size_bytes).contains(&entry);
    if entry % 2 != 0 || !segments.iter().any(inside) {
        return refuse(format!("{name} starts at {entry:#x}, which is not in its code"));
    }
    Ok(Image { base, entry, segments, headers_vaddr, header_count: headers.len() as u64, interpreter })
}

type Header = elf::ProgramHeader64<LittleEndian>;

/// The path of the dynamic linker, if the program names one.
fn interpreter_of(name: &str, data: &[u8], headers: &[Header]) -> Result<Option<String>, ConfigError> {
    let Some(h) = headers.iter().find(|h| h.p_type(LittleEndian) == elf::PT_INTERP) else { return Ok(None) };
    match h.data(LittleEndian, data).ok().and_then(path_of) {
        Some(path) => Ok(Some(path)),
        None => refuse(format!("{name} is dynamically linked, and the path of its dynamic linker is damaged")),
    }
}

/// The part of the file that a program header describes, in a program that is loaded at `base`.
fn segment_of<'data>(name: &str, data: &'data [u8], base: u64, h: &Header) -> Result<Segment<'data>, ConfigError> {
    let endian = LittleEndian;
    let (file_bytes, size_bytes) = (h.p_filesz(endian), h.p_memsz(endian));
    if file_bytes > size_bytes {
        return refuse(format!("{name} has a segment that is longer in the file than in memory"));
    }
    let Ok(bytes) = h.data(endian, data) else {
        return refuse(format!(
            "{name} is truncated: it has {} bytes but a segment reaches to byte {}",
            data.len(),
            u128::from(h.p_offset(endian)) + u128::from(file_bytes)
        ));
    };
    let flags = h.p_flags(endian);
    let rights = Rights {
        read: flags.0 & elf::PF_R.0 != 0,
        write: flags.0 & elf::PF_W.0 != 0,
        execute: flags.0 & elf::PF_X.0 != 0,
    };
    let end = base.checked_add(h.p_vaddr(endian)).and_then(|v| Some((v, v.checked_add(size_bytes)?)));
    let vaddr = match end {
        Some((vaddr, end)) if vaddr >= USER_BEGIN && end <= PMEM_WINDOW_BASE => vaddr,
        _ => {
            return refuse(format!(
                "{name} has a segment at {:#x} of {size_bytes} bytes; programs must lie between {USER_BEGIN:#x} \
                 and {PMEM_WINDOW_BASE:#x}",
                h.p_vaddr(endian)
            ));
        }
    };
    Ok(Segment { vaddr, size_bytes, bytes, rights })
}

/// The absolute path in the bytes of PT_INTERP.
fn path_of(bytes: &[u8]) -> Option<String> {
    let (&end, path) = bytes.split_last()?;
    let is_path = end == 0 && path.starts_with(b"/") && path.len() < PATH_MAX && !path.contains(&0);
    if is_path { String::from_utf8(path.to_vec()).ok() } else { None }
}

/// The section in which a program names its transaction backend; `guest/include/durasim/backend.h` writes it.
const BACKEND_SECTION: &[u8] = b".durasim.backend";

/// The names of the backends that the program `data` was built for: one, if it was built with durasim's headers. None if
/// it does not say, or its sections cannot be read: the loader of the program reports what is wrong with it.
pub fn backends(data: &[u8]) -> Vec<String> {
    let names = || {
        check_identity("the program", data).ok()?;
        let header = elf::FileHeader64::<LittleEndian>::parse(data).ok()?;
        let sections = header.sections(LittleEndian, data).ok()?;
        let (_, section) = sections.section_by_name(LittleEndian, BACKEND_SECTION)?;
        section.data(LittleEndian, data).ok()
    };
    let names = names().unwrap_or_default().split(|&byte| byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect()
}

/// The bytes of `e_ident`: magic, class, byte order.
fn check_identity(name: &str, data: &[u8]) -> Result<(), ConfigError> {
    if data.len() < elf::ELFMAG.len() || data[..4] != elf::ELFMAG {
        return refuse(format!("{name} is not an ELF file"));
    }
    match data.get(4).map(|&b| elf::FileClass(b)) {
        Some(elf::ELFCLASS64) => {}
        Some(elf::ELFCLASS32) => return refuse(format!("{name} is a 32-bit ELF; only 64-bit RISC-V programs run")),
        Some(_) => return refuse(format!("{name} is neither a 32-bit nor a 64-bit ELF")),
        None => return refuse(format!("{name} is truncated: its ELF header is incomplete")),
    }
    match data.get(5).map(|&b| elf::DataEncoding(b)) {
        Some(elf::ELFDATA2LSB) => Ok(()),
        Some(_) => refuse(format!("{name} is not little-endian; only little-endian RISC-V programs run")),
        None => refuse(format!("{name} is truncated: its ELF header is incomplete")),
    }
}

fn check_machine(
    name: &str,
    machine: elf::Machine,
    kind: elf::FileType,
    flags: elf::FileFlags,
) -> Result<(), ConfigError> {
    if machine != elf::EM_RISCV {
        return refuse(format!(
            "{name} is for another processor (ELF machine {}); only RISC-V programs run",
            machine.0
        ));
    }
    if kind != elf::ET_EXEC && kind != elf::ET_DYN {
        return refuse(format!("{name} is not an executable (ELF type {}); link it with -static", kind.0));
    }
    if flags.0 & elf::EF_RISCV_RVE.0 != 0 {
        return refuse(format!("{name} uses the RV64E register set; build it for rv64gc"));
    }
    // Soft-float and single-float programs need nothing that rv64gc lacks; quad-float ones need Q.
    if flags.0 & elf::EF_RISCV_FLOAT_ABI == elf::EF_RISCV_FLOAT_ABI_QUAD.0 {
        return refuse(format!("{name} uses the quad-precision ABI; build it for rv64gc and lp64d"));
    }
    Ok(())
}
