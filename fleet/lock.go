package fleet

import (
	"fmt"
	"os"
)

func errLocked(f *os.File) error { return fmt.Errorf("%s: another run is writing to it", f.Name()) }
