"""Fields of the messages that commands send and read: number, name and kind of each, in the notation of `lean.table`.

Written by packaging/wire_fields.py from protos/*.proto: change it there, then run make protos.
"""

FIELDS = {
    "GpuRequest": "1 num u, 2 per_task t, 3 exclusive_process t, 4 j_exclusive t, 5 text s",
    "PortRequest": "1 name s, 2 count u, 3 number u, 4 is_preferred t, 5 is_own t",
    "TaskPolicy": "1 events u*, 2 exit_codes i*, 3 action u, 4 timeout_s d, 5 index_plus_one u, 6 uncounted t",
    "Role": (
        "1 name s, 2 tasks_min u, 3 tasks_max u, 4 slots_per_task u, 5 requirement s, 6 gpu GpuRequest, 7 launch u, "
        "8 command s, 9 may_be_absent t, 10 environment b*, 11 cwd s, 12 ports PortRequest*, 13 after s*, "
        "14 after_any t, 15 policies TaskPolicy*, 16 restart u, 17 restarts_max u, 18 success_min u, "
        "19 failed_enough u, 20 succeeded_enough u, 21 run_limit_s d, 22 spread s, 23 argv s*, 24 image s, "
        "25 memory_limit_mib u, 31 spares u, 33 after_done s*, 34 completions u, 35 restart_pause_s d, "
        "36 restart_pause_max_s d, 37 stable_s d, 40 group u"
    ),
    "IndexRange": "1 first u, 2 last u, 3 step u",
    "Rlimit": "1 name s, 2 soft u",
    "Convention": "1 name s, 2 options s*",
    "Autoscale": (
        "1 role s, 2 metric s, 3 command s, 4 least u, 5 most u, 6 cooldown_s d, 7 interval_s d, 8 limit_s d, "
        "9 target u"
    ),
    "TaskRules": (
        "1 policies TaskPolicy*, 2 restarts_max u, 3 restarts_when_failed t, 4 success_min u, 5 succeeded_enough u, "
        "6 final_codes i*, 7 free_codes i*, 8 ttl_s d, 9 has_ttl t, 10 conventions Convention*, 11 origin s, "
        "12 owner_name s, 13 secrets b*, 15 format u, 31 has_replace t, 32 replace_s d, 33 restart_pause_s d, "
        "34 restart_pause_max_s d, 35 stable_s d, 48 autoscale Autoscale, 50 needs_each t"
    ),
    "HangRule": "1 after_s d, 2 first_s d, 3 cpus d, 4 network_bytes_s d, 5 gpu_power d, 6 no_stacks t",
    "SlurmTerms": "1 array_base u, 2 arguments s*, 3 command s",
    "HostFile": "1 path s, 2 hosts s*, 3 slots u*, 4 requirement s",
    "Checkpoint": (
        "1 directory s, 2 period_s d, 3 first_s d, 4 method s, 5 programs s, 6 restarts_from s, 7 forces_restart t, "
        "8 no_period t, 9 names_minutes t"
    ),
    "JobSpec": (
        "1 name s, 2 command s, 3 is_script t, 4 queues s*, 5 project s, 6 cwd s, 7 submit_cwd s, 8 input s, "
        "9 output s, 10 error s, 11 output_overwrite t, 12 error_overwrite t, 13 environment b*, 14 roles Role*, "
        "15 run_limit_s u, 16 memory_limit_mib u, 17 hosts s*, 18 hold t, 19 exclusive t, 20 rerunnable t, "
        "21 not_rerunnable t, 22 array IndexRange*, 23 array_limit u, 24 umask_plus_one u, 26 description s, "
        "27 user_group s, 28 dependency s, 29 begin_time d, 30 terminate_time d, 31 priority u, 32 notify_end t, "
        "33 shell s, 34 rlimits Rlimit*, 35 pre_exec s, 36 post_exec s, 37 output_dir s, 38 requeue_exit_values s, "
        "39 resizable t, 40 runtime_estimate_s u, 41 job_group s, 42 reservation s, 43 requirement_text s, "
        "46 ends_orphan t, 47 resize_notify s, 48 tasks TaskRules, 60 warning_action s, 61 warning_time_s d, "
        "70 hang HangRule, 80 slurm SlurmTerms, 130 interactive s, 150 input_spooled t, 151 input_data b, "
        "152 script_arguments s*, 153 mail_user s, 154 mail_begin t, 155 mail_end t, 156 mail_failure t, "
        "157 mail_events s, 158 esub_output b, 159 success_exit_values s, 165 host_file HostFile, 170 application s, "
        "175 file_copies s*, 176 checkpoint Checkpoint, 190 absolute_priority s, 195 service_class s, "
        "196 migration_min_plus_one u, 210 command_bytes b"
    ),
    "SubmitItem": (
        "1 request_id b, 2 spec JobSpec, 3 retry t, 4 unique_name t, 5 checkpoint_method s, 6 checkpoint_programs s"
    ),
    "SubmitBatch": "1 items SubmitItem*",
    "SubmitResult": "1 request_id b, 2 job u, 3 queue s, 4 default_queue t, 5 error s, 6 retry_later t, 7 retry_s u",
    "SubmitReplies": "1 results SubmitResult*",
    "JobRef": "1 job u, 2 indices IndexRange*",
    "JobFilter": (
        "1 refs JobRef*, 2 user s, 3 queue s, 4 host s, 5 name s, 6 project s, 7 states u*, 8 finished_too t, "
        "9 job_group s, 10 application s, 20 service_class s"
    ),
    "ListJobsRequest": (
        "1 filter JobFilter, 2 arrays t, 3 details t, 4 reasons t, 5 shares_details t, 6 basic_too t, 7 columns t, "
        "8 hosts_alone t, 9 end_columns t, 10 time_unit_s u, 20 absolute t"
    ),
    "TaskCpus": "1 cpus u*",
    "HostShare": (
        "1 host s, 2 slots u, 3 gpus u*, 4 memory_mib u, 6 tasks_by_role u*, 8 cpus TaskCpus*, 9 gpu_memory_mib u*, "
        "10 gpu_roles u*"
    ),
    "GpuProcess": "1 pid u, 2 memory_mib u, 3 sm d, 4 has_sm t, 5 user s, 6 command s",
    "GpuUsage": (
        "1 index u, 2 uuid s, 3 model s, 4 seconds d, 5 utilisation d, 6 utilisation_max d, 7 utilisation_s d, "
        "8 memory_utilisation_max d, 9 memory_utilisation_s d, 10 memory_mib u, 11 memory_mib_max u, "
        "12 memory_mib_s d, 13 power_w d, 14 power_w_max d, 15 energy_j d, 16 temperature_c_max u, 17 throttled_s d, "
        "18 idle_s d, 19 ecc_errors u, 20 trouble s, 21 processes GpuProcess*, 22 host s, 23 idle_max_s d"
    ),
    "Usage": (
        "1 cpu_s d, 2 memory_mib u, 3 memory_mib_max u, 4 swap_mib u, 5 pids u*, 6 process_groups u*, 7 threads u, "
        "8 host s, 9 memory_mib_mean d, 10 user_s d, 11 system_s d, 13 swap_mib_max u, 25 gpus GpuUsage*, "
        "26 collected_at d"
    ),
    "PendingReason": "1 code u, 2 text s, 3 hosts u, 4 host_names s*, 5 advice s, 6 rules_out t, 7 is_ineligible t",
    "ArrayCounts": "1 total u, 2 pend u, 3 done u, 4 run u, 5 exit u, 6 ssusp u, 7 ususp u, 8 psusp u, 9 spec s",
    "LoadBound": "1 index s, 2 sched d, 3 stop d, 4 has_sched t, 5 has_stop t",
    "TaskRun": "1 role u, 2 index u, 3 run u",
    "TaskState": (
        "1 task TaskRun, 2 phase u, 3 host s, 4 pid u, 5 started d, 6 ended d, 7 status i, 8 reason s, 9 detail s, "
        "10 order_again t, 11 not_before d, 12 failures u"
    ),
    "JobNote": "1 time d, 2 text s, 3 state u",
    "Progress": (
        "1 percent d, 2 seconds_left d, 3 text s, 4 time d, 5 role s, 6 index u, 7 host s, 8 has_percent t, "
        "9 has_seconds_left t"
    ),
    "Outlook": (
        "1 ahead u, 2 sureness s, 3 remedies s*, 4 is_hopeless t, 5 is_for_later t, 6 costs s*, 7 reserved HostShare*"
    ),
    "UnusedHost": "1 host s, 2 since d",
    "JobMessage": "1 number u, 2 user s, 3 time d, 4 text s, 5 level s, 6 size u, 7 data b",
    "FactorValue": "1 name s, 2 value d, 3 is_part t",
    "AbsolutePriority": "1 value d, 2 is_system t, 3 factors FactorValue*",
    "JobRecord": (
        "1 job u, 2 index u, 3 user s, 4 state u, 5 queue s, 6 from_host s, 7 hosts HostShare*, 8 name s, "
        "9 submit_time d, 10 start_time d, 11 end_time d, 12 project s, 13 exit_status i, 14 exit_reason s, "
        "15 usage Usage, 16 usage_by_host Usage*, 17 attempt u, 18 pending_reasons PendingReason*, 19 spec JobSpec, "
        "20 slots_min u, 21 slots_max u, 22 array ArrayCounts, 23 exec_cwd s, 24 exec_home s, 26 suspend_reason s, "
        "27 effective_requirement s, 28 priority u, 29 estimated_start d, 30 start_reason s, "
        "31 load_bounds LoadBound*, 32 share_account s, 33 tasks TaskState*, 34 restarts u, 45 gpus GpuUsage*, "
        "46 warnings JobNote*, 48 autoscale_error s, 50 progress Progress, 60 outlook Outlook, 61 hangs_since d, "
        "62 inactive_s d, 63 stacks s*, 64 unused_hosts UnusedHost*, 140 post u, 141 posted_at d, "
        "150 messages JobMessage*, 190 absolute AbsolutePriority, 200 exceptions s*"
    ),
    "JobColumns": (
        "1 kinds JobRecord*, 2 names s*, 3 job u*, 4 index u*, 5 submit_time d*, 6 kind u*, 7 name u*, 8 ended u*, "
        "9 start_time d*, 10 end_time d*, 11 cpu_s d*, 12 count u*"
    ),
    "JobPage": "1 jobs JobRecord*, 2 missing JobRef*, 3 columns JobColumns",
    "SignalRequest": (
        "1 filter JobFilter, 2 action u, 3 signal u, 4 newest_only t, 5 states u*, 6 hold t, 7 role s, "
        "8 task_plus_one u, 9 reason s, 10 force t, 11 ends t, 12 hosts s*"
    ),
    "SignalResult": "1 job u, 2 index u, 3 error s, 4 note s",
    "SignalReply": "1 results SignalResult*, 2 error s",
    "ModifyRequest": "1 refs JobRef*, 2 spec JobSpec, 3 fields s*, 4 filter JobFilter, 5 newest_only t, 6 is_switch t",
    "ModifyReply": "1 results SignalResult*",
    "MoveRequest": "1 ref JobRef, 2 place i, 3 among_own t",
    "MoveReply": "1 error s, 2 place i",
    "ForceRequest": "1 ref JobRef, 2 hosts HostShare*, 3 is_unconstrained t",
    "RoleSize": "1 role s, 2 tasks u",
    "ResizeRequest": "1 ref JobRef, 2 action u, 3 what s, 4 tasks u, 5 notify s, 6 sizes RoleSize*",
    "ResizeReply": "1 error s, 2 before RoleSize*, 3 after RoleSize*",
    "DependenciesRequest": "1 ref JobRef, 2 children t, 3 depth u",
    "DependencyLink": "1 job u, 2 relative u, 3 index u, 4 status s, 5 name s, 6 level u",
    "DependenciesReply": "1 error s, 2 condition s, 3 links DependencyLink*",
    "WatchRequest": "1 refs JobRef*",
    "JobChange": "1 job u, 2 index u, 3 state u, 4 exit_status i, 5 exit_reason s, 6 hosts s*, 7 attempt u",
    "ExplainRequest": "1 refs JobRef*, 2 host_names t",
    "Explanation": "1 job u, 2 index u, 3 reasons PendingReason*, 4 estimated_start d",
    "ExplainReply": "1 explanations Explanation*",
    "TimeRange": "1 first d, 2 last d",
    "HistoryRequest": (
        "1 filter JobFilter, 2 details t, 3 shares_details t, 4 between TimeRange, 5 submitted TimeRange, "
        "6 dispatched TimeRange, 7 completed TimeRange, 8 normalized_to s"
    ),
    "PeekTicketRequest": "1 ref JobRef, 2 filter JobFilter, 3 role s, 4 task u, 5 run u",
    "PeekRequest": "1 job PeekTicketRequest, 2 follow t, 3 last_bytes u",
    "TailChunk": "1 data b, 2 error s, 3 is_error_file t, 4 has_tasks t",
    "AttemptKey": "1 job u, 2 index u, 3 attempt u",
    "TaskStart": (
        "1 key AttemptKey, 2 command b, 3 argv b*, 4 cwd b, 5 environment b*, 6 task u, 7 no_input t, 8 host s, "
        "9 pmi t, 10 token b, 11 connection u, 12 resume t, 13 gone t, 14 got_out u, 15 got_err u, 16 got_pmi u, "
        "17 umask_plus_one u, 18 place u, 19 places u, 20 ticket b, 21 terminal t"
    ),
    "TaskInput": (
        "1 start TaskStart, 2 data b, 3 end_of_input t, 4 signal u, 5 pmi b, 6 offset u, 7 got_out u, 8 got_err u, "
        "9 got_pmi u, 10 done t, 11 lines u, 12 columns u"
    ),
    "TaskOutput": (
        "1 out b, 2 err b, 3 started t, 4 pid u, 5 ended t, 6 status i, 7 error s, 8 pmi b, 9 taken u, 10 offset u, "
        "11 taken_pmi u, 12 taken_signals u, 13 kept t, 14 patience_s d"
    ),
    "AccountsRequest": (
        "1 refs JobRef*, 2 users s*, 3 queues s*, 4 projects s*, 5 hosts s*, 6 name s, 7 states u*, "
        "8 submitted TimeRange, 9 dispatched TimeRange, 10 completed TimeRange, 11 reservation s, 12 hung t, "
        "13 normalized_to s, 14 form u, 15 application s, 20 service_class s"
    ),
    "EnvironmentRequest": "1 ref JobRef",
    "EnvironmentReply": "1 error s, 2 environment b*",
    "PostRequest": "1 ref JobRef, 2 filter JobFilter, 3 message JobMessage",
    "PostReply": "1 error s, 2 job u, 3 index u",
    "ReadRequest": "1 ref JobRef, 2 filter JobFilter, 3 number u, 4 with_data t",
    "ReadReply": "1 error s, 2 job u, 3 index u, 4 message JobMessage",
    "WaitRequest": "1 condition s",
    "WaitReply": "1 verdict u",
}
