package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mingwRuntime finds the runtime libraries of mingw-w64's GCC.
func mingwRuntime(name string) (path string, ok bool) {
	for _, pattern := range []string{"/usr/lib/gcc/x86_64-w64-mingw32/*-posix/", "/usr/lib/gcc/x86_64-w64-mingw32/*/", "/usr/x86_64-w64-mingw32/bin/"} {
		if found, _ := filepath.Glob(pattern + name); len(found) > 0 {
			return found[0], true
		}
	}
	return "", false
}

// moduleImages is the test folder of the PE library that the tests use, which
// holds images by Microsoft's compiler.
func moduleImages(t testing.TB) (dir string, ok bool) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/saferwall/pe").Output()
	dir = filepath.Join(strings.TrimSpace(string(out)), "test")
	if err != nil {
		return "", false
	}
	_, err = os.Stat(filepath.Join(dir, "kernel32.dll"))
	return dir, err == nil
}

// mutantSample lists strides and images in turn: small ones of every compiler
// that is at hand, and the vectors.
func mutantSample(t testing.TB, dir string) (sample []string) {
	t.Helper()
	for _, path := range writeVectors(t, dir) {
		sample = append(sample, "1", path)
	}
	if path, ok := mingwRuntime("libgcc_s_seh-1.dll"); ok {
		sample = append(sample, "2", path)
	}
	if images, ok := moduleImages(t); ok {
		for _, name := range []string{"kernel32.dll", "acpi.sys", "D2D1Debug2.dll", "liblzo2-2.dll"} {
			sample = append(sample, "16", filepath.Join(images, name))
		}
	}
	sample = append(sample, "80", goImage(t, dir))
	for path := range strings.SplitSeq(os.Getenv("ORACLE_IMAGES"), ":") {
		if path != "" {
			sample = append(sample, "40", path)
		}
	}
	return sample
}

// goImage builds this project for Windows: code by Go's compiler.
func goImage(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "go.exe")
	build := exec.Command("go", "build", "-o", path, "./cmd/dumptriage")
	build.Dir = moduleRoot(t)
	build.Env = append(os.Environ(), "GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}
