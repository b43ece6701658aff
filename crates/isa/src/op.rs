//! The operations: one row for each, with its name, its class and the registers it reads and writes.

/// The class of an instruction, as a timing model sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integer arithmetic and logic of one step, and hints.
    IntAlu,
    /// Integer multiplication.
    IntMul,
    /// Integer division and remainder.
    IntDiv,
    /// Conditional branch.
    Branch,
    /// Jump to an address known at decode.
    Jump,
    /// Jump to an address in a register.
    IndirectJump,
    /// Load, integer, floating-point or of a log register.
    Load,
    /// Store, integer or floating-point, and `cbo.zero`.
    Store,
    /// AMO, load-reserved and store-conditional.
    Atomic,
    /// Floating-point add, subtract, compare, convert, minimum, maximum, sign injection, move and classify.
    FpAdd,
    /// Floating-point multiplication.
    FpMul,
    /// Fused multiplication and addition.
    FpFused,
    /// Floating-point division.
    FpDiv,
    /// Square root.
    FpSqrt,
    /// FENCE.
    Fence,
    /// FENCE.I.
    FenceI,
    /// Cache-block management, and the flush of a log register: in order with stores, with nothing to write in the L1D.
    CacheBlock,
    /// Access to a control and status register.
    Csr,
    /// ECALL and EBREAK.
    System,
    /// A message to the machine.
    Marker,
    /// A load with checks, which may lead into a handler.
    CheckedLoad,
    /// A store with checks, which may lead into a handler, and a persistent store, which has none.
    CheckedStore,
    /// An operation that changes the filters of checked accesses.
    FilterUpdate,
    /// Begin, end, abort and test of hardware transactions.
    HardwareTransaction,
    /// Access to a check register.
    CheckRegister,
    /// The end of a handler: a jump to an address in a check register, with a result for any integer register.
    CheckReturn,
}

/// The register file that a field names, as the formula of a unified id: `(field & mask) + base`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bank {
    mask: u8,
    base: u8,
}

impl Bank {
    #[inline(always)]
    pub(crate) const fn id(self, field: u8) -> u8 {
        (field & self.mask) + self.base
    }
}

/// The integer registers.
const X: Bank = Bank { mask: 31, base: 0 };
/// The floating-point registers.
const F: Bank = Bank { mask: 31, base: 32 };
/// No register.
const N: Bank = Bank { mask: 0, base: 0 };

pub(crate) struct OpInfo {
    pub name: &'static str,
    pub class: Class,
    pub dest: Bank,
    pub sources: [Bank; 3],
}

macro_rules! operations {
    ($($op:ident $name:literal $class:ident $rd:ident $rs1:ident $rs2:ident $rs3:ident)*) => {
        /// An operation. Compressed instructions have no operations of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`")] $op,)*
        }

        impl Op {
            /// All operations.
            pub const ALL: &'static [Op] = &[$(Op::$op),*];

            #[inline(always)]
            pub(crate) fn info(self) -> &'static OpInfo {
                static INFO: [OpInfo; Op::ALL.len()] = [
                    $(OpInfo { name: $name, class: Class::$class, dest: $rd, sources: [$rs1, $rs2, $rs3] },)*
                ];
                &INFO[self as usize]
            }
        }
    };
}

operations! {
    Lui "lui" IntAlu X N N N
    Auipc "auipc" IntAlu X N N N
    Jal "jal" Jump X N N N
    Jalr "jalr" IndirectJump X X N N
    Beq "beq" Branch N X X N
    Bne "bne" Branch N X X N
    Blt "blt" Branch N X X N
    Bge "bge" Branch N X X N
    Bltu "bltu" Branch N X X N
    Bgeu "bgeu" Branch N X X N
    Lb "lb" Load X X N N
    Lh "lh" Load X X N N
    Lw "lw" Load X X N N
    Ld "ld" Load X X N N
    Lbu "lbu" Load X X N N
    Lhu "lhu" Load X X N N
    Lwu "lwu" Load X X N N
    Sb "sb" Store N X X N
    Sh "sh" Store N X X N
    Sw "sw" Store N X X N
    Sd "sd" Store N X X N
    Addi "addi" IntAlu X X N N
    Slti "slti" IntAlu X X N N
    Sltiu "sltiu" IntAlu X X N N
    Xori "xori" IntAlu X X N N
    Ori "ori" IntAlu X X N N
    Andi "andi" IntAlu X X N N
    Slli "slli" IntAlu X X N N
    Srli "srli" IntAlu X X N N
    Srai "srai" IntAlu X X N N
    Addiw "addiw" IntAlu X X N N
    Slliw "slliw" IntAlu X X N N
    Srliw "srliw" IntAlu X X N N
    Sraiw "sraiw" IntAlu X X N N
    Add "add" IntAlu X X X N
    Sub "sub" IntAlu X X X N
    Sll "sll" IntAlu X X X N
    Slt "slt" IntAlu X X X N
    Sltu "sltu" IntAlu X X X N
    Xor "xor" IntAlu X X X N
    Srl "srl" IntAlu X X X N
    Sra "sra" IntAlu X X X N
    Or "or" IntAlu X X X N
    And "and" IntAlu X X X N
    Addw "addw" IntAlu X X X N
    Subw "subw" IntAlu X X X N
    Sllw "sllw" IntAlu X X X N
    Srlw "srlw" IntAlu X X X N
    Sraw "sraw" IntAlu X X X N
    Fence "fence" Fence N N N N
    Pause "pause" IntAlu N N N N
    Ecall "ecall" System N N N N
    Ebreak "ebreak" System N N N N
    Marker "marker" Marker N X N N
    FenceI "fence.i" FenceI N N N N
    CboInval "cbo.inval" CacheBlock N X N N
    CboClean "cbo.clean" CacheBlock N X N N
    CboFlush "cbo.flush" CacheBlock N X N N
    CboZero "cbo.zero" Store N X N N
    LogLoad "log.load" Load N X N N
    LogFlush "log.flush" CacheBlock N N N N
    HtmBegin "htm.begin" HardwareTransaction X N N N
    HtmEnd "htm.end" HardwareTransaction N N N N
    HtmAbort "htm.abort" HardwareTransaction N N N N
    HtmTest "htm.test" HardwareTransaction X N N N
    CheckLoad "check.load" CheckedLoad X X X N
    CheckStoreH "check.store.h" CheckedStore N X X X
    CheckStoreBoth "check.store.both" CheckedStore N X X X
    PersistStore "persist.store" CheckedStore N X X X
    InsertFwd "insert.fwd" FilterUpdate X X N N
    InsertTrans "insert.trans" FilterUpdate N X N N
    ClearFwd "clear.fwd" FilterUpdate N N N N
    ClearTrans "clear.trans" FilterUpdate N N N N
    ChangeActive "change.active" FilterUpdate N N N N
    CheckRead "check.read" CheckRegister X N N N
    CheckWrite "check.write" CheckRegister N X N N
    CheckReturn "check.return" CheckReturn N N N N
    Csrrw "csrrw" Csr X X N N
    Csrrs "csrrs" Csr X X N N
    Csrrc "csrrc" Csr X X N N
    Csrrwi "csrrwi" Csr X N N N
    Csrrsi "csrrsi" Csr X N N N
    Csrrci "csrrci" Csr X N N N
    Mul "mul" IntMul X X X N
    Mulh "mulh" IntMul X X X N
    Mulhsu "mulhsu" IntMul X X X N
    Mulhu "mulhu" IntMul X X X N
    Mulw "mulw" IntMul X X X N
    Div "div" IntDiv X X X N
    Divu "divu" IntDiv X X X N
    Rem "rem" IntDiv X X X N
    Remu "remu" IntDiv X X X N
    Divw "divw" IntDiv X X X N
    Divuw "divuw" IntDiv X X X N
    Remw "remw" IntDiv X X X N
    Remuw "remuw" IntDiv X X X N
    Sh1add "sh1add" IntAlu X X X N
    Sh2add "sh2add" IntAlu X X X N
    Sh3add "sh3add" IntAlu X X X N
    AddUw "add.uw" IntAlu X X X N
    Sh1addUw "sh1add.uw" IntAlu X X X N
    Sh2addUw "sh2add.uw" IntAlu X X X N
    Sh3addUw "sh3add.uw" IntAlu X X X N
    SlliUw "slli.uw" IntAlu X X N N
    Andn "andn" IntAlu X X X N
    Orn "orn" IntAlu X X X N
    Xnor "xnor" IntAlu X X X N
    Min "min" IntAlu X X X N
    Minu "minu" IntAlu X X X N
    Max "max" IntAlu X X X N
    Maxu "maxu" IntAlu X X X N
    Rol "rol" IntAlu X X X N
    Ror "ror" IntAlu X X X N
    Rolw "rolw" IntAlu X X X N
    Rorw "rorw" IntAlu X X X N
    Rori "rori" IntAlu X X N N
    Roriw "roriw" IntAlu X X N N
    Clz "clz" IntAlu X X N N
    Ctz "ctz" IntAlu X X N N
    Cpop "cpop" IntAlu X X N N
    Clzw "clzw" IntAlu X X N N
    Ctzw "ctzw" IntAlu X X N N
    Cpopw "cpopw" IntAlu X X N N
    SextB "sext.b" IntAlu X X N N
    SextH "sext.h" IntAlu X X N N
    ZextH "zext.h" IntAlu X X N N
    OrcB "orc.b" IntAlu X X N N
    Rev8 "rev8" IntAlu X X N N
    Bclr "bclr" IntAlu X X X N
    Bext "bext" IntAlu X X X N
    Binv "binv" IntAlu X X X N
    Bset "bset" IntAlu X X X N
    Bclri "bclri" IntAlu X X N N
    Bexti "bexti" IntAlu X X N N
    Binvi "binvi" IntAlu X X N N
    Bseti "bseti" IntAlu X X N N
    CzeroEqz "czero.eqz" IntAlu X X X N
    CzeroNez "czero.nez" IntAlu X X X N
    LrW "lr.w" Atomic X X N N
    LrD "lr.d" Atomic X X N N
    ScW "sc.w" Atomic X X X N
    ScD "sc.d" Atomic X X X N
    AmoswapW "amoswap.w" Atomic X X X N
    AmoswapD "amoswap.d" Atomic X X X N
    AmoaddW "amoadd.w" Atomic X X X N
    AmoaddD "amoadd.d" Atomic X X X N
    AmoxorW "amoxor.w" Atomic X X X N
    AmoxorD "amoxor.d" Atomic X X X N
    AmoandW "amoand.w" Atomic X X X N
    AmoandD "amoand.d" Atomic X X X N
    AmoorW "amoor.w" Atomic X X X N
    AmoorD "amoor.d" Atomic X X X N
    AmominW "amomin.w" Atomic X X X N
    AmominD "amomin.d" Atomic X X X N
    AmomaxW "amomax.w" Atomic X X X N
    AmomaxD "amomax.d" Atomic X X X N
    AmominuW "amominu.w" Atomic X X X N
    AmominuD "amominu.d" Atomic X X X N
    AmomaxuW "amomaxu.w" Atomic X X X N
    AmomaxuD "amomaxu.d" Atomic X X X N
    AmocasW "amocas.w" Atomic X X X X
    AmocasD "amocas.d" Atomic X X X X
    Flw "flw" Load F X N N
    Fsw "fsw" Store N X F N
    FmaddS "fmadd.s" FpFused F F F F
    FmsubS "fmsub.s" FpFused F F F F
    FnmsubS "fnmsub.s" FpFused F F F F
    FnmaddS "fnmadd.s" FpFused F F F F
    FaddS "fadd.s" FpAdd F F F N
    FsubS "fsub.s" FpAdd F F F N
    FmulS "fmul.s" FpMul F F F N
    FdivS "fdiv.s" FpDiv F F F N
    FsqrtS "fsqrt.s" FpSqrt F F N N
    FsgnjS "fsgnj.s" FpAdd F F F N
    FsgnjnS "fsgnjn.s" FpAdd F F F N
    FsgnjxS "fsgnjx.s" FpAdd F F F N
    FminS "fmin.s" FpAdd F F F N
    FmaxS "fmax.s" FpAdd F F F N
    FeqS "feq.s" FpAdd X F F N
    FltS "flt.s" FpAdd X F F N
    FleS "fle.s" FpAdd X F F N
    FclassS "fclass.s" FpAdd X F N N
    FcvtWS "fcvt.w.s" FpAdd X F N N
    FcvtWuS "fcvt.wu.s" FpAdd X F N N
    FcvtLS "fcvt.l.s" FpAdd X F N N
    FcvtLuS "fcvt.lu.s" FpAdd X F N N
    FcvtSW "fcvt.s.w" FpAdd F X N N
    FcvtSWu "fcvt.s.wu" FpAdd F X N N
    FcvtSL "fcvt.s.l" FpAdd F X N N
    FcvtSLu "fcvt.s.lu" FpAdd F X N N
    FmvXW "fmv.x.w" FpAdd X F N N
    FmvWX "fmv.w.x" FpAdd F X N N
    Fld "fld" Load F X N N
    Fsd "fsd" Store N X F N
    FmaddD "fmadd.d" FpFused F F F F
    FmsubD "fmsub.d" FpFused F F F F
    FnmsubD "fnmsub.d" FpFused F F F F
    FnmaddD "fnmadd.d" FpFused F F F F
    FaddD "fadd.d" FpAdd F F F N
    FsubD "fsub.d" FpAdd F F F N
    FmulD "fmul.d" FpMul F F F N
    FdivD "fdiv.d" FpDiv F F F N
    FsqrtD "fsqrt.d" FpSqrt F F N N
    FsgnjD "fsgnj.d" FpAdd F F F N
    FsgnjnD "fsgnjn.d" FpAdd F F F N
    FsgnjxD "fsgnjx.d" FpAdd F F F N
    FminD "fmin.d" FpAdd F F F N
    FmaxD "fmax.d" FpAdd F F F N
    FeqD "feq.d" FpAdd X F F N
    FltD "flt.d" FpAdd X F F N
    FleD "fle.d" FpAdd X F F N
    FclassD "fclass.d" FpAdd X F N N
    FcvtWD "fcvt.w.d" FpAdd X F N N
    FcvtWuD "fcvt.wu.d" FpAdd X F N N
    FcvtLD "fcvt.l.d" FpAdd X F N N
    FcvtLuD "fcvt.lu.d" FpAdd X F N N
    FcvtDW "fcvt.d.w" FpAdd F X N N
    FcvtDWu "fcvt.d.wu" FpAdd F X N N
    FcvtDL "fcvt.d.l" FpAdd F X N N
    FcvtDLu "fcvt.d.lu" FpAdd F X N N
    FcvtSD "fcvt.s.d" FpAdd F F N N
    FcvtDS "fcvt.d.s" FpAdd F F N N
    FmvXD "fmv.x.d" FpAdd X F N N
    FmvDX "fmv.d.x" FpAdd F X N N
    Flh "flh" Load F X N N
    Fsh "fsh" Store N X F N
    FcvtSH "fcvt.s.h" FpAdd F F N N
    FcvtDH "fcvt.d.h" FpAdd F F N N
    FcvtHS "fcvt.h.s" FpAdd F F N N
    FcvtHD "fcvt.h.d" FpAdd F F N N
    FmvXH "fmv.x.h" FpAdd X F N N
    FmvHX "fmv.h.x" FpAdd F X N N
}

impl Op {
    /// The name of the operation in assembly.
    pub fn mnemonic(self) -> &'static str {
        self.info().name
    }
}
