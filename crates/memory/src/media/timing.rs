//! Times between the commands of DDR memory, in picoseconds. Names are those of the standards
//! (DEVIATIONS.md, ddr-times).

use crate::range::in_range;
use durasim_types::{ConfigError, Picos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! times {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The times of a memory.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub struct DdrTiming {
            $($(#[$doc])* pub $name: Picos,)*
        }

        /// Times as a machine file gives them; what is not given is that of the standard.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct DdrTimingConfig {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $name: Option<Picos>,)*
        }

        impl DdrTimingConfig {
            /// Gives the standard's times to what was not set.
            pub fn complete(&mut self, standard: &DdrTiming) {
                $(self.$name.get_or_insert(standard.$name);)*
            }

            /// The times, once all are set.
            pub fn completed(&self) -> Option<DdrTiming> {
                Some(DdrTiming { $($name: self.$name?,)* })
            }
        }

        impl DdrTiming {
            /// The names of all times, in the order of the machine file.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name),)*];

            /// The time of that name, to be changed.
            pub fn named_mut(&mut self, name: &str) -> Option<&mut Picos> {
                match name {
                    $(stringify!($name) => Some(&mut self.$name),)*
                    _ => None,
                }
            }

            /// The times as a machine file gives them.
            pub fn to_config(&self) -> DdrTimingConfig {
                DdrTimingConfig { $($name: Some(self.$name),)* }
            }
        }
    };
}

times! {
    /// tCK, a clock of the memory: commands begin with one, and the controller rounds all other times up to clocks.
    t_ck_ps,
    /// tCAS or CL: from a read command to its first data.
    t_cas_ps,
    /// CWL: from a write command to its first data.
    t_cwl_ps,
    /// The time 64 bytes take over the data bus: four clocks for a burst of eight over 64 bits.
    t_burst_ps,
    /// tRCD: from ACT to a read or write command of its bank.
    t_rcd_ps,
    /// tRP: from PRE to ACT of its bank.
    t_rp_ps,
    /// tRAS: from ACT to PRE of its bank.
    t_ras_ps,
    /// tWR: from the last data of a write to PRE of its bank.
    t_wr_ps,
    /// tRTP: from a read command to PRE of its bank.
    t_rtp_ps,
    /// tCCD_S: between column commands to different groups of banks of a rank.
    t_ccd_s_ps,
    /// tCCD_L (DDR3: tCCD): between column commands to one group of banks.
    t_ccd_l_ps,
    /// tRRD_S: between ACTs of different groups of banks of a rank.
    t_rrd_s_ps,
    /// tRRD_L (DDR3: tRRD): between ACTs of one group of banks.
    t_rrd_l_ps,
    /// tFAW: no five ACTs of a rank within this time.
    t_faw_ps,
    /// tWTR_S: from the last data of a write to a read command of another group of banks of the rank.
    t_wtr_s_ps,
    /// tWTR_L (DDR3: tWTR): from the last data of a write to a read command of its group of banks.
    t_wtr_l_ps,
    /// Time for which the data bus is idle between the data of a read and that of a write after it.
    t_rtw_ps,
    /// tREFI: a rank is refreshed once in this time; 0 for media that need no refresh.
    t_refi_ps,
    /// tRFC: from REF to the next command of its rank.
    t_rfc_ps,
}

impl DdrTiming {
    /// DDR3-1600K (11-11-11), chips of 4 Gbit with eight bits of data and rows of 1 KB: JEDEC JESD79-3F, the
    /// tables of its speed bins and timing parameters for DDR3-1600, refresh at up to 85 degrees.
    pub const DDR3_1600K: DdrTiming = DdrTiming {
        t_ck_ps: 1250,
        t_cas_ps: 13_750,
        t_cwl_ps: 10_000,
        t_burst_ps: 5000,
        t_rcd_ps: 13_750,
        t_rp_ps: 13_750,
        t_ras_ps: 35_000,
        t_wr_ps: 15_000,
        t_rtp_ps: 7500,
        t_ccd_s_ps: 5000,
        t_ccd_l_ps: 5000,
        t_rrd_s_ps: 6000,
        t_rrd_l_ps: 6000,
        t_faw_ps: 30_000,
        t_wtr_s_ps: 7500,
        t_wtr_l_ps: 7500,
        t_rtw_ps: 2500,
        t_refi_ps: 7_800_000,
        t_rfc_ps: 260_000,
    };

    /// DDR4-3200AA (22-22-22), chips of 8 Gbit with eight bits of data and rows of 1 KB: JEDEC JESD79-4B, the tables of
    /// its speed bins and timing parameters for DDR4-3200, refresh at up to 85 degrees.
    pub const DDR4_3200AA: DdrTiming = DdrTiming {
        t_ck_ps: 625,
        t_cas_ps: 13_750,
        t_cwl_ps: 10_000,
        t_burst_ps: 2500,
        t_rcd_ps: 13_750,
        t_rp_ps: 13_750,
        t_ras_ps: 32_000,
        t_wr_ps: 15_000,
        t_rtp_ps: 7500,
        t_ccd_s_ps: 2500,
        t_ccd_l_ps: 5000,
        t_rrd_s_ps: 2500,
        t_rrd_l_ps: 4900,
        t_faw_ps: 21_000,
        t_wtr_s_ps: 2500,
        t_wtr_l_ps: 7500,
        t_rtw_ps: 1250,
        t_refi_ps: 7_800_000,
        t_rfc_ps: 350_000,
    };

    /// All times rounded up to whole clocks, as a controller counts them. The time between refreshes is rounded down.
    pub fn in_clocks(&self) -> DdrTiming {
        let mut rounded = *self;
        for name in DdrTiming::NAMES {
            let time = rounded.named_mut(name).expect("the name is one of all");
            *time = time.next_multiple_of(self.t_ck_ps);
        }
        rounded.t_refi_ps = self.t_refi_ps - self.t_refi_ps % self.t_ck_ps;
        rounded
    }

    /// A closed row from ACT until the next ACT at the shortest, with a write in it.
    fn longest_row_ps(&self) -> Picos {
        self.t_ras_ps.max(self.t_rcd_ps + (self.t_cwl_ps + self.t_burst_ps + self.t_wr_ps).max(self.t_rtp_ps))
            + self.t_rp_ps
    }

    pub(crate) fn check(&self, field: &str, ranks: u32) -> Result<(), ConfigError> {
        in_range(field, "t_ck_ps", self.t_ck_ps, 100, 100_000)?;
        let mut times = *self;
        for name in DdrTiming::NAMES {
            let time = *times.named_mut(name).expect("the name is one of all");
            in_range(field, name, time, 0, 1_000_000_000)?;
        }
        for (name, time) in [("t_burst_ps", self.t_burst_ps), ("t_rcd_ps", self.t_rcd_ps), ("t_rp_ps", self.t_rp_ps)] {
            // Two commands of one bank are never given in one clock.
            in_range(field, name, time, 1, 1_000_000_000)?;
        }
        let clocks = self.in_clocks();
        // Between two refreshes, waiting for other banks included, there has to be time for a row; and the refreshes of
        // ranks come one after the other.
        let rows_ps = clocks.t_rfc_ps + 4 * clocks.longest_row_ps();
        if self.t_refi_ps > 0
            && (clocks.t_refi_ps < rows_ps || clocks.t_refi_ps / u64::from(ranks) <= 2 * clocks.t_rp_ps)
        {
            let problem = format!(
                "{} ps are too short for the refreshes of {ranks} ranks and the row activations between them",
                self.t_refi_ps
            );
            return Err(ConfigError::new(format!("{field}.t_refi_ps"), problem));
        }
        Ok(())
    }
}
