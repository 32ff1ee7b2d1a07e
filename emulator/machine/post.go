package machine

import "time"

// Progress is how far a boot has come; the values are Redfish's (DSP2046,
// ComputerSystem.BootProgress.LastState).
type Progress string

// The steps of a boot.
const (
	NoProgress        Progress = "None"
	ProcessorStarted  Progress = "PrimaryProcessorInitializationStarted"
	BusStarted        Progress = "BusInitializationStarted"
	MemoryStarted     Progress = "MemoryInitializationStarted"
	ProcessorsStarted Progress = "SecondaryProcessorInitializationStarted"
	PCIStarted        Progress = "PCIResourceConfigStarted"
	HardwareComplete  Progress = "SystemHardwareInitializationComplete"
	SetupEntered      Progress = "SetupEntered"
	OSBootStarted     Progress = "OSBootStarted"
	OSRunning         Progress = "OSRunning"
)

// postSteps are what a POST consists of, and when each step begins. Training
// memory takes the most of it on servers.
var postSteps = []struct {
	is    Progress
	share time.Duration // of a POST of 100, that has gone by then
}{
	{ProcessorStarted, 0},
	{BusStarted, 6},
	{MemoryStarted, 10},
	{ProcessorsStarted, 50},
	{PCIStarted, 62},
	{HardwareComplete, 95},
}

// reach notes a step of the boot and when it began.
func (own *Main) reach(p Progress, at time.Time) {
	if own.Progress != p {
		own.Progress, own.ProgressAt = p, at
	}
}

// nextStep is the next step of a POST and when it begins; false when the
// machine is in none, in its last step, or in one that does not end.
func (m *Machine) nextStep() (Progress, time.Time, bool) {
	if m.st.Phase != POST || m.st.Deadline.IsZero() {
		return "", time.Time{}, false
	}
	for i, s := range postSteps[:len(postSteps)-1] {
		if s.is == m.st.Progress {
			next := postSteps[i+1]
			return next.is, m.st.Since.Add(m.st.Deadline.Sub(m.st.Since) * next.share / 100), true
		}
	}
	return "", time.Time{}, false
}
