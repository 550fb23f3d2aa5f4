package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"gvisor.dev/gvisor/pkg/bpf"
	"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp"

	"tranca/internal/guest/sentryspec"
	"tranca/internal/require"
)

var update = flag.Bool("update", false, "write the compiled filters")

const compiledFile = "filter_amd64.go"

// printVariable has the test binary print the file and nothing else.
const printVariable = "TRANCA_PRINT_FILTERS"

func TestMain(m *testing.M) {
	if os.Getenv(printVariable) != "" {
		if err := printFilters(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestFilters compiles gVisor's rules and compares them with what was compiled
// before. The process id is in the filter, so that it is done by the first
// process of a namespace, as it is used.
func TestFilters(t *testing.T) {
	require.Check(t, "amd64", runtime.GOARCH == "amd64", "the filters are compiled for amd64")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), printVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v %s", err, errs.String())
	}
	want, err := format.Source(out.Bytes())
	if err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if *update {
		if err := os.WriteFile(compiledFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(compiledFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what gVisor's rules say: go test ./cmd/tranca-sentry -run TestFilters -update", compiledFile)
	}
	if kernelCompiled.program == nil || filesCompiled.program == nil {
		t.Error("no filter was compiled")
	}
}

func printFilters() error {
	quiet(false)
	o, err := kernelOptions(&sentryspec.Spec{Platform: "systrap"})
	if err != nil {
		return err
	}
	kernel, err := buildKernel(o)
	if err != nil {
		return err
	}
	files, err := buildFiles(filesOptions)
	if err != nil {
		return err
	}
	fmt.Print("package main\n\nimport (\n\"gvisor.dev/gvisor/pkg/bpf\"\n\"gvisor.dev/gvisor/pkg/seccomp/precompiledseccomp\"\n)\n\n")
	fmt.Print("// Written by TestFilters with -update: see filter.go.\n\n")
	printOne("kernelCompiled", o.Vars(), kernel)
	printOne("filesCompiled", filesOptions.Vars(), files)
	return nil
}

func printOne(name string, vars precompiledseccomp.Values, program []bpf.Instruction) {
	fmt.Printf("var %s = compiled{\nvars: precompiledseccomp.Values{\n", name)
	for _, k := range slices.Sorted(maps.Keys(vars)) {
		fmt.Printf("%q: %d,\n", k, vars[k])
	}
	fmt.Printf("},\nprogram: []bpf.Instruction{\n")
	for line := range slices.Chunk(program, 6) {
		for _, i := range line {
			fmt.Printf("{OpCode: %#x, JumpIfTrue: %d, JumpIfFalse: %d, K: %#x}, ", i.OpCode, i.JumpIfTrue, i.JumpIfFalse, i.K)
		}
		fmt.Println()
	}
	fmt.Printf("},\n}\n\n")
}
