//! The parts of an object: the programs and the maps that will be made.

use libbpf_rs::OpenObject;

/// Programs and maps that will be made.
pub(super) struct Parts {
    /// Names and sections.
    pub(super) programs: Vec<(String, String)>,
    /// Names and types.
    pub(super) maps: Vec<(String, u32)>,
}

impl Parts {
    pub(super) fn of(open: &OpenObject) -> Self {
        let text = |name: &std::ffi::OsStr| name.to_string_lossy().into_owned();
        let programs = open.progs().filter(|program| program.autoload());
        let maps = open.maps().filter(|map| map.autocreate());
        Self {
            programs: programs.map(|one| (text(one.name()), text(one.section()))).collect(),
            maps: maps.map(|map| (text(map.name()), map.map_type() as u32)).collect(),
        }
    }

    pub(super) fn section(&self, program: &str) -> &str {
        let found = self.programs.iter().find(|(name, _)| name == program);
        found.map_or("", |(_, section)| section)
    }

    pub(super) fn kind(&self, map: &str) -> Option<u32> {
        self.maps.iter().find(|(name, _)| name == map).map(|(_, kind)| *kind)
    }
}
