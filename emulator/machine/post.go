package machine

import "time"

// Progress is the progress of a boot; the values are Redfish's (DSP2046,
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

// postSteps are the steps of POST and when each begins. On servers, memory
// training takes most of the time.
var postSteps = []struct {
	is    Progress
	share time.Duration // start of the step, in percent of POST
}{
	{ProcessorStarted, 0},
	{BusStarted, 6},
	{MemoryStarted, 10},
	{ProcessorsStarted, 50},
	{PCIStarted, 62},
	{HardwareComplete, 95},
}

// setProgress records a step of the boot and when it began.
func (s *Main) setProgress(p Progress, at time.Time) {
	if s.Progress != p {
		s.Progress, s.ProgressAt = p, at
	}
}

// nextStep returns the next step of POST and when it begins; false outside of
// POST, in its last step, or in a POST that hangs.
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
