//! Places in the sources of a program, as the debug information (DWARF) in its ELF has them, or in the files that the compiler
//! has split it into (`.dwo` where it was compiled, `.dwp` beside the program).

use crate::elf::PIE_BASE;
use crate::symbols::{Symbols, readable};
use addr2line::Loader;
use addr2line::gimli::Reader;
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, SectionHeader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// A function with a place in its source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceFrame {
    /// The function, if it has a name.
    pub function: Option<String>,
    /// The file, as the compiler was given it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
}

/// The places of the instructions of a program.
pub struct SourceLines {
    /// The address of the program's first byte in its own addresses.
    base: u64,
    loader: Option<Loader>,
    symbols: Symbols,
    problem: Option<String>,
    /// Whether some place had a line.
    names_lines: bool,
}

impl SourceLines {
    /// The debug information of the executable `data`, which was read from `path`. What is wrong with it is no error:
    /// [`SourceLines::problem`] says so.
    pub fn of(path: &Path, data: &[u8]) -> Self {
        let symbols = Symbols::of(data);
        let mut lines = SourceLines { base: base_of(data), loader: None, symbols, problem: None, names_lines: false };
        if section(data, b".debug_info").is_none() {
            lines.problem = Some(if lines.symbols.is_empty() {
                "the program has no debug information and no symbols: compile it with -g and do not strip it".to_owned()
            } else {
                "the program has no debug information, only symbols: compile it with -g".to_owned()
            });
            return lines;
        }
        // The libraries check their bounds; a mistake in them would be no reason to lose a verdict.
        match catch_unwind(|| Loader::new(path).map_err(|error| error.to_string())) {
            Ok(Ok(loader)) => lines.loader = Some(loader),
            Ok(Err(error)) => lines.problem = Some(damaged(&error)),
            Err(_) => lines.problem = Some(damaged("its reader has failed")),
        }
        lines
    }

    /// The sentence that says what the debug information lacks, if it lacks something, for the places that were asked about.
    pub fn problem(&self) -> Option<String> {
        match &self.problem {
            Some(problem) => Some(problem.clone()),
            None if self.names_lines => None,
            None => Some("the debug information of the program names no line of these places".to_owned()),
        }
    }

    /// The place of the instruction at `pc`: the innermost function first, then those into which the compiler has put it. At
    /// least one, which may say nothing.
    pub fn frames(&mut self, pc: u64) -> Vec<SourceFrame> {
        let mut frames = match &self.loader {
            None => Vec::new(),
            Some(loader) => {
                let address = pc.wrapping_sub(self.base);
                match catch_unwind(AssertUnwindSafe(|| frames_at(loader, address))) {
                    Ok(Ok(frames)) => frames,
                    Ok(Err(error)) => self.is_damaged(&error),
                    Err(_) => self.is_damaged("its reader has failed"),
                }
            }
        };
        self.names_lines |= frames.iter().any(|frame| frame.line.is_some());
        if frames.is_empty() {
            frames.push(SourceFrame::default());
        }
        let outermost = frames.last_mut().expect("there is at least one");
        if outermost.function.is_none() {
            outermost.function = self.symbols.function_at(pc).map(|(name, _)| name.to_owned());
        }
        frames
    }

    fn is_damaged(&mut self, error: &str) -> Vec<SourceFrame> {
        self.problem.get_or_insert_with(|| damaged(error));
        Vec::new()
    }
}

fn damaged(error: &str) -> String {
    format!("the debug information of the program is damaged: {error}")
}

/// The frames of an address, in the program's own addresses.
fn frames_at(loader: &Loader, address: u64) -> Result<Vec<SourceFrame>, String> {
    let mut found = Vec::new();
    let mut frames = loader.find_frames(address).map_err(|error| error.to_string())?;
    while let Some(frame) = frames.next().map_err(|error| error.to_string())? {
        let function = frame.function.as_ref().and_then(name_of);
        let location = frame.location;
        let file = location.as_ref().and_then(|location| location.file.map(str::to_owned));
        // Line 0: the compiler names none.
        let line = location.and_then(|location| location.line).filter(|line| *line > 0);
        found.push(SourceFrame { function, file, line });
    }
    Ok(found)
}

fn name_of<R: Reader>(function: &addr2line::FunctionName<R>) -> Option<String> {
    function.raw_name().ok().map(|name| readable(name.into_owned()))
}

/// The address at which the loader puts the first byte of the program.
pub(crate) fn base_of(data: &[u8]) -> u64 {
    let header = elf::FileHeader64::<LittleEndian>::parse(data);
    if header.is_ok_and(|header| header.e_type(LittleEndian) == elf::ET_DYN) { PIE_BASE } else { 0 }
}

/// The address and the bytes of a section.
pub(crate) fn section<'a>(data: &'a [u8], name: &[u8]) -> Option<(u64, &'a [u8])> {
    let header = elf::FileHeader64::<LittleEndian>::parse(data).ok()?;
    let sections = header.sections(LittleEndian, data).ok()?;
    let (_, section) = sections.section_by_name(LittleEndian, name)?;
    let bytes = section.data(LittleEndian, data).ok()?;
    Some((section.sh_addr(LittleEndian), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_elf_has_no_places_and_says_so() {
        let mut lines = SourceLines::of(Path::new("/nowhere"), b"no ELF");
        assert_eq!(lines.frames(0x1000), [SourceFrame::default()]);
        assert!(lines.problem().is_some_and(|problem| problem.contains("no debug information and no symbols")));
    }
}
