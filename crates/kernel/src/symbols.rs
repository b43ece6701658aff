//! Names of functions in a program, for messages that say where it is.

use crate::elf::PIE_BASE;
use object::LittleEndian;
use object::elf;
use object::read::elf::{FileHeader, Sym};

/// The functions of a program by address, from the symbol table of its ELF; none if it was stripped or cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// Start, size in bytes (0 if unknown) and name, by ascending start.
    functions: Vec<(u64, u64, String)>,
}

impl Symbols {
    /// Reads the symbol table of the executable `data`.
    pub fn of(data: &[u8]) -> Self {
        Symbols { functions: functions(data).unwrap_or_default() }
    }

    /// Whether no function has a name.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that contains `pc`, and the number of bytes after its start.
    pub fn function_at(&self, pc: u64) -> Option<(&str, u64)> {
        let after = self.functions.partition_point(|(start, ..)| *start <= pc);
        let (start, size, name) = &self.functions[..after].last()?;
        let offset = pc - start;
        (*size == 0 || offset < *size).then_some((name.as_str(), offset))
    }
}

fn functions(data: &[u8]) -> Option<Vec<(u64, u64, String)>> {
    let endian = LittleEndian;
    let header = elf::FileHeader64::<LittleEndian>::parse(data).ok()?;
    let base = if header.e_type(endian) == elf::ET_DYN { PIE_BASE } else { 0 };
    let symbols = header.sections(endian, data).ok()?.symbols(endian, data, elf::SHT_SYMTAB).ok()?;
    let mut functions: Vec<(u64, u64, String)> = Vec::new();
    for symbol in symbols.iter().filter(|symbol| symbol.st_type() == elf::STT_FUNC) {
        let Ok(name) = symbol.name(endian, symbols.strings()) else { continue };
        let name = String::from_utf8_lossy(name).into_owned();
        functions.push((base.wrapping_add(symbol.st_value(endian)), symbol.st_size(endian), readable(name)));
    }
    // Of several names of one place the first by the alphabet, so that the order of the table does not matter.
    functions.sort();
    functions.dedup_by_key(|(start, ..)| *start);
    Some(functions)
}

/// The name as its source has it, without parameters.
pub(crate) fn readable(name: String) -> String {
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    let demangled =
        cpp_demangle::Symbol::new(&name).ok().and_then(|symbol| symbol.demangle_with_options(&options).ok());
    demangled.unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_name_of_its_function() {
        let function = |start, size, name: &str| (start, size, name.to_owned());
        let symbols = Symbols { functions: vec![function(0x100, 8, "main"), function(0x200, 0, "_start")] };
        assert_eq!(symbols.function_at(0xff), None);
        assert_eq!(symbols.function_at(0x104), Some(("main", 4)));
        assert_eq!(symbols.function_at(0x108), None, "between two functions");
        assert_eq!(symbols.function_at(0x300), Some(("_start", 0x100)), "a function without a size");
        assert!(Symbols::of(b"no ELF").function_at(0x100).is_none());
    }

    #[test]
    fn names_of_cpp_are_those_of_the_source() {
        assert_eq!(readable("_ZN4pool4openEPKc".into()), "pool::open");
        assert_eq!(readable("take".into()), "take");
    }
}
