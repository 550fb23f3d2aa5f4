package vmtest

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kernel is an unpacked kernel package.
type Kernel struct {
	// Image is the compressed kernel.
	Image string
	// modules maps a module's name, with underscores, to its file.
	modules map[string]string
}

// OpenKernel looks into a folder into which a Debian kernel package was
// unpacked. The newest kernel counts if there are several.
func OpenKernel(dir string) (*Kernel, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot/vmlinuz-*"))
	if err != nil || len(images) == 0 {
		return nil, fmt.Errorf("no boot/vmlinuz-* in %s: unpack a kernel package there", dir)
	}
	image := slices.Max(images)
	release := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
	k := &Kernel{Image: image, modules: map[string]string{}}
	root := filepath.Join(dir, "lib/modules", release)
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".ko" {
			k.modules[moduleName(path)] = path
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("modules of kernel %s: %w", release, err)
	}
	return k, nil
}

// LoadOrder returns the files of the named modules and of what they depend
// on, each after its dependencies. A name that the kernel package doesn't have
// as a module is taken to be built in.
func (k *Kernel) LoadOrder(names ...string) ([]string, error) {
	var order []string
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		path, ok := k.modules[name]
		if seen[name] || !ok {
			return nil
		}
		seen[name] = true
		deps, err := dependencies(path)
		if err != nil {
			return err
		}
		for _, dep := range deps {
			if err := visit(dep); err != nil {
				return err
			}
		}
		order = append(order, path)
		return nil
	}
	for _, name := range names {
		if err := visit(strings.ReplaceAll(name, "-", "_")); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// dependencies reads what a module says that it needs: there is no
// modules.dep where the package was unpacked but not installed.
func dependencies(path string) ([]string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", path, err)
	}
	defer f.Close()
	section := f.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("module %s has no .modinfo", path)
	}
	info, err := section.Data()
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", path, err)
	}
	return parseModinfo(info), nil
}

func parseModinfo(info []byte) []string {
	var deps []string
	for field := range bytes.SplitSeq(info, []byte{0}) {
		list, ok := strings.CutPrefix(string(field), "depends=")
		if !ok {
			continue
		}
		for dep := range strings.SplitSeq(list, ",") {
			if dep != "" {
				deps = append(deps, strings.ReplaceAll(dep, "-", "_"))
			}
		}
	}
	return deps
}

func moduleName(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(filepath.Base(path), ".ko"), "-", "_")
}
