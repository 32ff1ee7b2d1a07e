package lab

import (
	"os"
	"testing"

	"github.com/metalab-dev/metalab/scenarios/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }
