package firmware

import (
	"errors"
	"testing"
	"time"
)

func TestHeldSettingsWaitForWhoSaysWhen(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("BootMode", "LegacyBios"), Hold: true})
	b.do(SetAttributes{Settings: set("NumLock", "Off"), Hold: true})
	b.expect(b.boot(), "")
	b.values(map[string]string{"BootMode": "Uefi", "NumLock": "On"})
	if p := b.f.View().Pending(); p == nil || !p.Held || len(p.Settings) != 2 {
		t.Fatalf("pending = %+v, want both, held", p)
	}
	b.do(SetAttributes{When: When{Apply: OnReset}, Hold: true, Task: "7", Takes: time.Minute})
	b.do(SetAttributes{Settings: set("AssetTag", "A1"), Hold: true}) // joins what is no longer held
	evs, hold := b.f.Boot(b.now)
	b.restart()
	b.expect(evs, "bios.applied, 7 for 1m0s")
	b.values(map[string]string{"BootMode": "LegacyBios", "NumLock": "Off", "AssetTag": "A1"})
	if v := b.f.View(); hold != time.Minute || !v.Works("7") {
		t.Errorf("POST holds for %s, works = %t", hold, v.Works("7"))
	}
	b.expect(b.pass(59*time.Second), "")
	b.expect(b.pass(time.Second), "7 done ")
	if v := b.f.View(); v.Finishing() != nil || v.Works("7") {
		t.Errorf("finishing = %+v after the job", v.Finishing())
	}
}

func TestNothingHeldIsNothingToApply(t *testing.T) {
	b := newBench(t)
	if _, err := b.f.Apply(b.now, SetAttributes{When: When{Apply: OnReset}, Hold: true, Task: "7"}); !errors.Is(err, ErrNothing) {
		t.Errorf("error = %v, want ErrNothing", err)
	}
}

func TestAResetWhileJobsFinishKeepsThem(t *testing.T) {
	b := newBench(t)
	b.do(SetAttributes{Settings: set("NumLock", "Off"), Task: "7", Takes: time.Minute})
	b.boot()
	b.pass(30 * time.Second)
	b.do(SetAttributes{Settings: set("NumLock", "On"), Task: "8", Takes: time.Minute})
	b.boot()
	b.expect(b.pass(59*time.Second), "")
	b.expect(b.pass(time.Second), "7 done , 8 done ")
}
