Feature: RAID
  A server gets its volumes before its image: from its RAID controller, which
  its BMC configures, or from Linux, which finds on the disks what the agent has
  written there.

  # B-170 B-173 B-174 B-176 B-52
  Scenario Outline: A volume outlives as many drives as its level says
    Given a lab with 1 server of the model "<model>"
    And the operator has registered the server
    When the operator asks for hardware RAID:
      """
      - {level: "<level>", sizeGibibytes: 100, rotational: <turning>}
      """
    Then the host is prepared with it
    And the server has the volumes "<level>"
    When "the books" are written on volume 1
    And <lost> of the drives of volume 1 fail
    Then volume 1 is degraded
    And volume 1 holds "the books"
    When the drives that failed are replaced
    And 100 hours pass
    Then volume 1 is well
    And volume 1 holds "the books"
    When 1 of the other drives of volume 1 fail
    Then volume 1 holds "the books"

    Examples:
      | level | turning | lost | model  |
      | 1     | true    | 1    | raid   |
      | 5     | false   | 1    | raid   |
      | 6     | true    | 2    | raid   |
      | 1+0   | false   | 1    | raid   |
      | 5+0   | true    | 1    | raid16 |
      | 6+0   | true    | 2    | raid16 |

  # B-52 B-53 B-170 B-173
  Scenario Outline: Volumes are changed at once, at the next reset or by jobs
    Given a lab with 1 server of the model "<model>"
    And the operator has registered the server
    When the operator counts how often the server is reset
    And the operator asks for hardware RAID:
      """
      - {level: "1", name: system, controller: "<controller>", physicalDisks: [<first>, <second>]}
      """
    Then the host is prepared with it
    And the server has the volumes "1"
    And volume 1 is made of the drives "<first>, <second>"
    And the server was reset <resets> times
    When the operator asks for hardware RAID:
      """
      - {level: "5", controller: "<controller>"}
      """
    Then the host is prepared with it
    And the server has the volumes "5"
    When the operator asks for no hardware RAID
    Then the host is prepared with it
    And the server has no volumes

    Examples: immediate
      | model | controller      | first  | second | resets |
      | raid  | RAID Controller | Disk.6 | Disk.7 | 0      |

    Examples: with the next reset only
      | model | controller        | first  | second | resets |
      | raid2 | RAID Controller 1 | Disk.2 | Disk.3 | 1      |

    Examples: job-driven
      | model | controller        | first  | second | resets |
      | raid2 | RAID Controller 2 | Disk.6 | Disk.7 | 0      |

  # B-52 B-53
  Scenario: The controller is killed while volumes wait for a reset
    Given a lab with 1 server of the model "raid2"
    And the operator has registered the server
    When the operator asks for hardware RAID:
      """
      - {level: "1", controller: "1"}
      - {level: "1", controller: "2"}
      """
    And preparing has begun
    And the controller is killed
    And another controller starts
    Then the host is prepared with it
    And the server has the volumes "1, 1"

  # B-170 B-176
  Scenario: A stripe outlives nothing, and says so
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator asks for hardware RAID:
      """
      - {level: "0", sizeGibibytes: 100, numberOfPhysicalDisks: 2}
      """
    Then the host is prepared with it
    When "the books" are written on volume 1
    And 1 of the drives of volume 1 fail
    Then volume 1 cannot be read

  # B-55 B-163 B-170 B-173 B-174 B-65
  Scenario: The first volume is the root device
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator asks for hardware RAID:
      """
      - {level: "1", name: system, sizeGibibytes: 200, rotational: false, controller: "1", physicalDisks: [Disk.6, Disk.7]}
      - {level: "0", sizeGibibytes: 10, numberOfPhysicalDisks: 1}
      """
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server has the volumes "1, 0"
    And volume 1 is made of the drives "Disk.6, Disk.7"
    And volume 1 begins with the image
    And the server runs what volume 1 holds
    And the host has no root device hints
    When the operator takes the image away
    Then the host becomes "available"
    And the server has the volumes "1, 0"
    When the operator asks for no hardware RAID
    Then the host is prepared with it
    And the server has no volumes

  # B-171 B-172 B-176 B-53
  Scenario Outline: RAID that cannot be had is refused, and nothing is touched
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator asks for <kind> RAID:
      """
      - <volume>
      """
    Then the host reports "preparation error"
    And the message of the error says "<message>"
    And the server has no volumes
    When the operator asks for hardware RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with it
    And the host reports no error
    And the server has the volumes "1"

    Examples:
      | kind     | volume                                                            | message                                                                  |
      | hardware | {level: "2"}                                                      | level 2 is not supported: Redfish has no such RAID type                   |
      | hardware | {level: "5", numberOfPhysicalDisks: 2}                            | level 5 needs 3 physical disks, not 2                                     |
      | hardware | {level: "5+0"}                                                    | level 5+0 needs 6 physical disks of one kind, and 4 are free              |
      | hardware | {level: "6+0", rotational: true}                                  | level 6+0 needs 8 physical disks of one kind (hdd), and 4 are free        |
      | hardware | {level: "1", sizeGibibytes: 9000}                                 | no 2 free physical disks are large enough for 9000 GiB at level 1         |
      | hardware | {level: "1", controller: "7"}                                     | there is no controller 7                                                  |
      | hardware | {level: "1", controller: "1", physicalDisks: [Disk.0, Disk.99]}   | controller 1 has no physical disk Disk.99                                 |
      | software | {level: "1", sizeGibibytes: 90000}                                | on each of 12 disks                                                       |
      | software | {level: "1", physicalDisks: [{serialNumber: x}, {serialNumber: y}]} | no disk matches the root device hints                                   |

  # B-52 B-53
  Scenario: The controller is killed while volumes are made
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator asks for hardware RAID:
      """
      - {level: "1", rotational: true}
      - {level: "5", rotational: false}
      """
    And preparing has begun
    And the controller is killed
    And another controller starts
    Then the host is prepared with it
    And the server has the volumes "1, 5"

  # B-10 B-52 B-206 B-212
  Scenario Outline: While RAID, settings and firmware change, with a BMC that dies as well: seed <seed>
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator asks at once for RAID level 1, the settings "ProcCores=8" and the firmware "bios=2.4.0, nic:1=22.40.1"
    And controllers are killed and the BMC restarts, 5 times, at points drawn from the seed <seed>
    Then the host has all of it
    And it never said that it is available with half of it

    Examples:
      | seed |
      | 1    |
      | 2    |
      | 3    |
      | 4    |

  # B-52 B-61 B-163 B-170 B-173
  Scenario: Software RAID, from its disks to a server that boots off what is left
    Given a lab with 1 server
    And the operator has registered the server
    When the operator asks for software RAID:
      """
      - {level: "1"}
      """
    Then the host is prepared with it
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the image lies on all disks where md expects it
    And the server runs what its first disk holds
    And the host has no root device hints
    When the first disk is pulled
    And the server is switched off and on again
    Then the server runs what its second disk holds
    When the first disk is put back
    And the operator takes the image away
    Then the host becomes "deprovisioning"
    And the host is prepared with it
    And it passed through "deprovisioning, available, preparing, available"
    When the operator deletes the host
    Then the host is gone

  # B-170
  Scenario: Software RAID is deleted even where disks are not cleaned
    Given a lab with 1 server
    And the operator has registered the server
    When the operator disables cleaning
    And the operator asks for software RAID:
      """
      - {level: "1", sizeGibibytes: 20}
      - {level: "0"}
      """
    Then the host is prepared with it
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    When the operator asks for no software RAID
    And the operator takes the image away
    Then the host becomes "available"
    And the server's disks hold no partition table
