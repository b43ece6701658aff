fn main() {
    let text = std::env::args().nth(1).unwrap();
    let request: durasim_machine::RunRequest = serde_json::from_str(&text).unwrap();
    let mut out = durasim_machine::Captured::default();
    let r = durasim_machine::run(&request, durasim_designs::ROWS, &mut out);
    match r { Ok(r) => println!("{:?} {} cycles {} instr {} mips {:.1}\n{}", r.tx, r.digest, r.roi.cycles, r.program.instructions, r.host.mips, out.text()), Err(e) => println!("{e}\n{}", out.text()) }
}
