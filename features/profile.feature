Feature: Hardware profiles
  The inspected hardware is compared with the known profiles. status.hardwareProfile is
  the one that matches; unknown if none does.

  @B-24 @B-190
  Scenario Outline: The profile "<profile>" matches <what>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server with:
      """
      spec: {hardwareProfile: <requested>}
      """
    Then the host becomes "available"
    And the host's status field "hardwareProfile" is "<profile>"
    And the host's status field "provisioning.rootDeviceHints.<hint>" is "<value>"
    When the operator sets the image
    Then the host becomes "provisioned"

    Examples:
      | what                                 | model     | requested | profile | hint       | value    |
      | no vendor's server                   | generic   | default   | unknown | deviceName | /dev/sda |
      | a Dell                               | dell-r650 | default   | dell    | hctl       | 0:0:0:0  |
      | what is requested and there          | generic   | dell      | dell    | hctl       | 0:0:0:0  |
      | a Dell for which another is requested | dell-r650 | unknown   | unknown | deviceName | /dev/sda |

  @B-24 @B-98 @B-190
  Scenario: A Dell with a volume matches another profile when it is inspected again
    Given a lab with 1 server of the model "dell-r650"
    And the operator has registered the server
    And the host's status field "hardwareProfile" is "dell"
    When the operator sets hardware RAID:
      """
      - {level: "1", controller: RAID.SL.3-1}
      """
    Then the host is prepared with the RAID
    When the operator annotates the host with "inspect.metal3.io"
    Then the annotation "inspect.metal3.io" is removed
    And the host's status field "hardwareProfile" is "dell-raid"
    And the host becomes "available"
